//! The pool of connections, and the three ways to use one: read, write, and several steps as one transaction.

mod connect;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use curt_core::{ErrorKind, PortError, PortResult};
use deadpool_postgres::{
    Client, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts,
};
use futures_util::future::{join_all, join3, try_join_all};
use tokio_postgres::types::{FromSql, ToSql};
use tokio_postgres::{Error, Row};

use self::connect::Connector;
use super::address::Address;
use super::failure::{BACKEND, failed, no_connection, spoils_connection, too_late};
use super::settings::PostgresSettings;
use super::tls::Tls;
use crate::effect::Effect;

pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// One statement of a transaction.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) sql: &'a str,
    pub(super) values: &'a [Value<'a>],
}

pub(super) struct Engine {
    pool: Pool,
    address: Address,
    /// How long a caller waits for statements that were sent. Longer than the engine takes to end one by itself, so
    /// that its clear answer comes first.
    deadline: Duration,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.address)
    }
}

impl Engine {
    /// Connects to nothing yet.
    pub(super) fn new(address: Address, settings: &PostgresSettings) -> PortResult<Arc<Self>> {
        let tls = match address.encrypted {
            true => Some(Tls::new(address.roots.as_deref())?),
            false => None,
        };
        let hosts = u32::try_from(address.hosts.len()).unwrap_or(u32::MAX);
        let manager = Manager::from_connect(
            address.hosts[0].clone(),
            Connector::new(&address, tls, settings),
            ManagerConfig {
                recycling_method: RecyclingMethod::Fast,
            },
        );
        let pool = Pool::builder(manager)
            .max_size(settings.connections.get())
            .runtime(Runtime::Tokio1)
            .timeouts(Timeouts {
                wait: Some(settings.wait_timeout),
                create: Some(settings.connect_timeout * hosts + Duration::from_millis(100)),
                recycle: Some(settings.connect_timeout),
            })
            .build();
        let pool = pool.map_err(|error| {
            let op = "make a pool of connections";
            PortError::new(ErrorKind::Bug, BACKEND, op, "it has no clock").with_source(error)
        })?;
        Ok(Arc::new(Self {
            pool,
            address,
            deadline: settings.statement_timeout + Duration::from_secs(1),
        }))
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// A connection for what the other methods do not fit. [`finish`](Self::finish) its work.
    pub(super) async fn client(&self, op: &'static str) -> PortResult<Client> {
        let got = self.pool.get().await;
        got.map_err(|error| no_connection(op, &self.address, error))
    }

    /// Runs a statement that changes nothing.
    pub(super) async fn read(
        &self,
        op: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> PortResult<Vec<Row>> {
        let client = self.client(op).await?;
        let work = run(&client, Step { sql, values });
        let done = self.within_deadline(op, Effect::None, work).await;
        self.finish(op, Effect::None, client, done)
    }

    /// Runs a statement that is a transaction of its own. If the connection breaks, it is unknown whether it happened.
    pub(super) async fn write(
        &self,
        op: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> PortResult<Vec<Row>> {
        let client = self.client(op).await?;
        let work = run(&client, Step { sql, values });
        let done = self.within_deadline(op, Effect::Unknown, work).await;
        self.finish(op, Effect::Unknown, client, done)
    }

    /// Runs the steps as one transaction, with the answers of each. All of it is sent at once: one round trip, and no
    /// lock is held while we think. A step sees what was committed before it began.
    pub(super) async fn transact(
        &self,
        op: &'static str,
        steps: &[Step<'_>],
    ) -> PortResult<Vec<Vec<Row>>> {
        self.run_steps(op, Effect::Unknown, steps).await
    }

    /// As [`transact`](Self::transact), for steps that change nothing but the settings of their transaction.
    pub(super) async fn read_in_steps(
        &self,
        op: &'static str,
        steps: &[Step<'_>],
    ) -> PortResult<Vec<Vec<Row>>> {
        self.run_steps(op, Effect::None, steps).await
    }

    async fn run_steps(
        &self,
        op: &'static str,
        effect: Effect,
        steps: &[Step<'_>],
    ) -> PortResult<Vec<Vec<Row>>> {
        let client = self.client(op).await?;
        let work = run_all(&client, steps);
        let done = self.within_deadline(op, effect, work).await;
        self.finish(op, effect, client, done)
    }

    /// Waits no longer than the deadline. The inner error is the driver's, the outer one ours.
    pub(super) async fn within_deadline<T>(
        &self,
        op: &'static str,
        effect: Effect,
        work: impl Future<Output = Result<T, Error>>,
    ) -> PortResult<Result<T, Error>> {
        tokio::time::timeout(self.deadline, work)
            .await
            .map_err(|_| too_late(op, &self.address, effect))
    }

    /// Gives the connection back, or away if it is not to be trusted, and says what an error means.
    pub(super) fn finish<T>(
        &self,
        op: &'static str,
        effect: Effect,
        client: Client,
        done: PortResult<Result<T, Error>>,
    ) -> PortResult<T> {
        let broken = match &done {
            Ok(Ok(_)) => false,
            Ok(Err(error)) => spoils_connection(error),
            // Its answer would still come, and a later call would wait behind it.
            Err(_) => true,
        };
        if broken {
            drop(Object::take(client));
        }
        done?.map_err(|error| failed(op, &self.address, effect, error))
    }
}

async fn run(client: &Client, step: Step<'_>) -> Result<Vec<Row>, Error> {
    let statement = client.prepare_cached(step.sql).await?;
    client.query(&statement, step.values).await
}

async fn run_all(client: &Client, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, Error> {
    let prepared = steps.iter().map(|step| client.prepare_cached(step.sql));
    let statements = try_join_all(prepared).await?;
    let work = steps
        .iter()
        .zip(&statements)
        .map(|(step, statement)| client.query(statement, step.values));
    // Requests go out in the order in which they are polled first, which is this one. After a step that failed the
    // engine refuses the rest and turns the commit into a rollback.
    let (begun, answers, committed) = join3(
        client.batch_execute("BEGIN"),
        join_all(work),
        client.batch_execute("COMMIT"),
    )
    .await;
    begun?;
    let answers = answers.into_iter().collect::<Result<_, _>>()?;
    committed?;
    Ok(answers)
}

/// A column of an answer. Another type than expected means that the tables are not ours.
pub(super) fn column<'a, T: FromSql<'a>>(
    op: &'static str,
    row: &'a Row,
    index: usize,
) -> PortResult<T> {
    row.try_get(index).map_err(|error| {
        let detail = "an answer does not hold what this version writes";
        PortError::new(ErrorKind::Corrupt, BACKEND, op, detail).with_source(error)
    })
}
