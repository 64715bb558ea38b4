//! The pools of connections, and the ways to use one: look-up, read, write, and several steps as one transaction.
//!
//! Look-ups, writes of requests and everything else have pools of their own ([`Lane`]) on one way to the primary
//! ([`Route`]). A deadline is over a whole call. Look-ups go on at a standby while the primary does not answer
//! ([`Standby`]).

mod deadlines;
mod hosts;
mod lane;
mod lookups;
mod replica_choice;
mod replicas;
mod retries;
mod route;
mod script;
mod standby;

use std::sync::Arc;
use std::time::Duration;

use curt_core::{ErrorKind, PortError, PortResult};
use deadpool_postgres::ClientWrapper;
use futures_util::future::{join_all, join3, try_join_all};
use tokio::time::Instant;
use tokio_postgres::types::{FromSql, ToSql};
use tokio_postgres::{Error, Row};

use self::hosts::Hosts;
use self::lane::{Lane, NoConnection};
use self::replicas::Replicas;
use self::retries::Retries;
use self::route::Route;
use self::standby::Standby;
use super::address::Address;
use super::failure::{BACKEND, all_busy, failed, no_answer, spoils_connection};
use super::tls::Tls;
use crate::settings::PostgresSettings;
use curt_adapter_kit::Effect;

pub(super) use self::hosts::Receive;
pub(super) use self::lane::Session;
pub(super) use self::lookups::FoundRows;
pub use self::lookups::HostReads;

pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// One statement of a transaction.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) sql: &'a str,
    pub(super) values: &'a [Value<'a>],
}

/// A call whose outcome the driver told, or that was given up.
pub(super) type Outcome<T> = PortResult<Result<T, Error>>;

pub(super) struct Engine {
    lookups: Arc<Lane>,
    /// Of calls that change something, or read what such a call needs.
    writes: Arc<Lane>,
    background: Arc<Lane>,
    standby: Option<Arc<Standby>>,
    replicas: Option<Arc<Replicas>>,
    flush_timeout: Duration,
    totals_interval: Duration,
    address: Arc<Address>,
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
        let hosts = Arc::new(Hosts::new(&address, tls, settings));
        let primary = Route::to_primary(Arc::clone(&hosts));
        let lane = |size, timeout| Lane::new(Arc::clone(&primary), size, timeout);
        let lookups = settings.lookup_connections.get();
        let standby = match settings.standby_after {
            Some(after) if hosts.count() > 1 => {
                let route = Route::to_standby(&primary);
                let lane = Lane::new(route, lookups, settings.lookup_timeout);
                Some(Standby::new(lane, after))
            }
            _ => None,
        };
        Ok(Arc::new(Self {
            lookups: lane(lookups, settings.lookup_timeout),
            writes: lane(settings.write_connections.get(), settings.write_timeout),
            background: lane(
                settings.background_connections.get(),
                settings.background_timeout,
            ),
            replicas: Replicas::new(&hosts, &primary, standby.as_ref(), settings),
            standby,
            flush_timeout: settings.flush_timeout,
            totals_interval: settings.totals_interval,
            address: Arc::new(address),
        }))
    }

    /// The same engine for work that no request waits for: everything by the pool and the deadline of such work.
    pub(super) fn in_background(&self) -> Arc<Self> {
        Arc::new(Self {
            lookups: Arc::clone(&self.background),
            writes: Arc::clone(&self.background),
            background: Arc::clone(&self.background),
            standby: None,
            replicas: None,
            flush_timeout: self.flush_timeout,
            totals_interval: self.totals_interval,
            address: Arc::clone(&self.address),
        })
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// How old totals may be that are counted by reading.
    pub(super) fn totals_interval(&self) -> Duration {
        self.totals_interval
    }

    /// How many look-ups may be under way.
    pub(super) fn lookup_connections(&self) -> usize {
        self.lookups.size()
    }

    /// When a look-up that begins now is given up.
    pub(super) fn lookup_deadline(&self) -> Instant {
        self.lookups.deadline()
    }

    /// How long a write may take.
    pub(super) fn write_timeout(&self) -> Duration {
        self.writes.timeout()
    }

    /// Remembers where the primary is in its log, about once a second: a standby must have come as far.
    pub(super) fn note_primary(&self, position: i64) {
        if let Some(standby) = &self.standby {
            standby.note_primary(position);
        }
    }

    /// Whether look-ups go on without the primary.
    pub(super) fn has_standby(&self) -> bool {
        self.standby.is_some()
    }

    /// A connection for what the other methods do not fit. [`finish`](Self::finish) its work.
    pub(super) async fn client(&self, op: &'static str) -> PortResult<Session> {
        let deadline = self.background.deadline();
        self.session(op, &self.background, deadline).await
    }

    /// A connection to the primary beside all pools, which tells what the engine notifies it of.
    pub(super) async fn listener(
        &self,
        op: &'static str,
        receive: &Receive,
    ) -> PortResult<ClientWrapper> {
        let login = self.background.route().log_in_listening(receive).await;
        login.map_err(|why| PortError::new(ErrorKind::Unavailable, BACKEND, op, why.detail))
    }

    /// Resolves when another host has taken over as the primary, or none serves.
    pub(super) async fn primary_change(&self) {
        let route = self.background.route();
        route.leave(route.epoch()).await;
    }

    async fn session(
        &self,
        op: &'static str,
        lane: &Arc<Lane>,
        deadline: Instant,
    ) -> PortResult<Session> {
        lane.session(deadline).await.map_err(|why| match why {
            NoConnection::Busy => all_busy(op, &self.address),
            NoConnection::Late => {
                lane.route().search();
                no_answer(op, &self.address)
            }
            NoConnection::Unreachable(why) => {
                PortError::new(ErrorKind::Unavailable, BACKEND, op, why.detail)
            }
        })
    }

    /// Reads a few rows as they are now: from the primary alone.
    pub(super) async fn read_latest(
        &self,
        op: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> PortResult<Vec<Row>> {
        let deadline = self.lookups.deadline();
        let step = Step { sql, values };
        self.ask(op, &self.lookups, step, deadline).await
    }

    /// Runs a statement that changes nothing and may take a while.
    pub(super) async fn read(
        &self,
        op: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> PortResult<Vec<Row>> {
        let deadline = self.background.deadline();
        let step = Step { sql, values };
        self.ask(op, &self.background, step, deadline).await
    }

    async fn ask(
        &self,
        op: &'static str,
        lane: &Arc<Lane>,
        step: Step<'_>,
        deadline: Instant,
    ) -> PortResult<Vec<Row>> {
        let mut retries = Retries::until(deadline);
        loop {
            let session = self.session(op, lane, deadline).await?;
            let done = self
                .within(op, Effect::None, (lane, deadline), run(&session, step))
                .await;
            match self.finish(op, Effect::None, session, done) {
                Err(failure) if retries.is_due(&failure).await => {}
                answer => return answer,
            }
        }
    }

    /// Runs a statement that is a transaction of its own. If the connection breaks, it is unknown whether it happened.
    pub(super) async fn write(
        &self,
        op: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> PortResult<Vec<Row>> {
        let deadline = self.writes.deadline();
        let mut retries = Retries::until(deadline);
        loop {
            let session = self.session(op, &self.writes, deadline).await?;
            let work = run(&session, Step { sql, values });
            let until = (&*self.writes, deadline);
            let done = self.within(op, Effect::Unknown, until, work).await;
            match self.finish(op, Effect::Unknown, session, done) {
                Err(failure) if retries.is_due(&failure).await => {}
                answer => return answer,
            }
        }
    }

    /// Runs the steps as one transaction, with the answers of each. All of it is sent at once: one round trip, and no
    /// lock is held while we think. A step sees what was committed before it began.
    pub(super) async fn transact(
        &self,
        op: &'static str,
        steps: &[Step<'_>],
    ) -> PortResult<Vec<Vec<Row>>> {
        self.run_steps(op, &self.writes, Effect::Unknown, steps)
            .await
    }

    /// As [`transact`](Self::transact), for steps that change nothing but the settings of their transaction.
    pub(super) async fn read_in_steps(
        &self,
        op: &'static str,
        steps: &[Step<'_>],
    ) -> PortResult<Vec<Vec<Row>>> {
        self.run_steps(op, &self.background, Effect::None, steps)
            .await
    }

    async fn run_steps(
        &self,
        op: &'static str,
        lane: &Arc<Lane>,
        effect: Effect,
        steps: &[Step<'_>],
    ) -> PortResult<Vec<Vec<Row>>> {
        let deadline = lane.deadline();
        let mut retries = Retries::until(deadline);
        loop {
            let session = self.session(op, lane, deadline).await?;
            let work = run_all(&session, steps);
            let done = self.within(op, effect, (lane, deadline), work).await;
            match self.finish(op, effect, session, done) {
                Err(failure) if retries.is_due(&failure).await => {}
                answer => return answer,
            }
        }
    }

    /// Gives the connection back, or away if it is not to be trusted, and says what an error means.
    pub(super) fn finish<T>(
        &self,
        op: &'static str,
        effect: Effect,
        session: Session,
        done: Outcome<T>,
    ) -> PortResult<T> {
        match &done {
            Ok(Ok(_)) => session.release(),
            Ok(Err(error)) if spoils_connection(error) => session.close(),
            Ok(Err(_)) => session.release(),
            // Its answer is still to come, for nobody.
            Err(_) => drop(session),
        }
        done?.map_err(|error| failed(op, &self.address, effect, error))
    }
}

async fn run(client: &Session, step: Step<'_>) -> Result<Vec<Row>, Error> {
    let statement = client.prepare_cached(step.sql).await?;
    client.query(&statement, step.values).await
}

async fn run_all(client: &Session, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, Error> {
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
