//! One session with a cluster, and the four ways in which statements are run.

use std::fmt;
use std::sync::{Arc, PoisonError};

use curt_adapter_kit::Effect;
use curt_adapter_kit::reconnect::Reconnecting;
use curt_adapter_kit::wide_column::{Deadlines, Decided};
use curt_core::PortResult;
use scylla::deserialize::row::DeserializeRow;
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, SerialConsistency};
use scylla::value::{CqlValue, Row};

use crate::address::Route;
use crate::connect::{Connected, connect, serial_consistency};
use crate::failure::{BACKEND, corrupt, failed, unprepared};
use crate::settings::CassandraSettings;
use crate::statement::{Cql, Mode};

/// A cluster that is connected to with the first call.
pub(crate) struct Engine {
    pub(crate) route: Arc<Route>,
    pub(crate) settings: Arc<CassandraSettings>,
    pub(crate) deadlines: Deadlines,
    link: Reconnecting<Arc<Connected>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({})", self.route)
    }
}

impl Engine {
    pub(crate) fn new(route: Route, settings: &CassandraSettings) -> Arc<Self> {
        let (route, settings) = (Arc::new(route), Arc::new(settings.clone()));
        let connect = {
            let (route, settings) = (Arc::clone(&route), Arc::clone(&settings));
            move || connect(Arc::clone(&route), Arc::clone(&settings))
        };
        let deadlines = Deadlines {
            backend: BACKEND,
            address: route.to_string().into(),
            call: settings.call_timeout,
            background: settings.background_timeout,
        };
        Arc::new(Self {
            route,
            settings,
            deadlines,
            link: Reconnecting::new(connect),
        })
    }

    /// All rows of the answer, which must be few.
    pub(crate) async fn rows<R>(
        &self,
        op: &'static str,
        cql: Cql,
        values: impl SerializeRow,
    ) -> PortResult<Vec<R>>
    where
        R: for<'frame, 'metadata> DeserializeRow<'frame, 'metadata>,
    {
        let answer = self.run(op, cql, values, Effect::None).await?;
        let rows = answer
            .into_rows_result()
            .map_err(|error| corrupt(op, error))?;
        let rows = rows.rows::<R>().map_err(|error| corrupt(op, error))?;
        rows.map(|row| row.map_err(|error| corrupt(op, error)))
            .collect()
    }

    /// The first row of the answer.
    pub(crate) async fn first<R>(
        &self,
        op: &'static str,
        cql: Cql,
        values: impl SerializeRow,
    ) -> PortResult<Option<R>>
    where
        R: for<'frame, 'metadata> DeserializeRow<'frame, 'metadata>,
    {
        Ok(self.rows(op, cql, values).await?.into_iter().next())
    }

    /// An unconditional write.
    pub(crate) async fn write(
        &self,
        op: &'static str,
        effect: Effect,
        cql: Cql,
        values: impl SerializeRow,
    ) -> PortResult<()> {
        self.run(op, cql, values, effect).await.map(drop)
    }

    /// The same unconditional write of several rows of one partition, in one request.
    pub(crate) async fn write_rows(
        &self,
        op: &'static str,
        effect: Effect,
        cql: Cql,
        rows: Vec<impl SerializeRow>,
    ) -> PortResult<()> {
        let connected = self.link.get(op).await?.connection;
        let statement = self.prepared(op, &connected, cql).await?;
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.set_is_idempotent(true);
        for _ in &rows {
            batch.append_statement(statement.clone());
        }
        let answer = connected.session.batch(&batch, rows).await;
        answer
            .map(drop)
            .map_err(|error| failed(op, &self.route, effect, error))
    }

    /// A conditional write. Fails when it has certainly changed nothing.
    pub(crate) async fn decide(
        &self,
        op: &'static str,
        cql: Cql,
        values: impl SerializeRow,
    ) -> PortResult<Decided> {
        read_decision(op, self.run(op, cql, values, Effect::Unknown).await)
    }

    /// Conditional and other writes of one partition, in one transaction: all are applied if every condition holds, or
    /// none. Fails when it has certainly changed nothing.
    pub(crate) async fn decide_all(
        &self,
        op: &'static str,
        statements: Vec<(Cql, Vec<Option<CqlValue>>)>,
    ) -> PortResult<Decided> {
        let connected = self.link.get(op).await?.connection;
        let mut batch = Batch::new(BatchType::Unlogged);
        let mut values = Vec::with_capacity(statements.len());
        for (cql, own) in statements {
            batch.append_statement(self.prepared(op, &connected, cql).await?);
            values.push(own);
        }
        batch.set_execution_profile_handle(Some(connected.fallthrough.clone()));
        batch.set_request_timeout(Some(self.settings.call_timeout / 2));
        let answer = connected.session.batch(&batch, values).await;
        let answer = answer.map_err(|error| failed(op, &self.route, Effect::Unknown, error));
        read_decision(op, answer)
    }

    async fn run(
        &self,
        op: &'static str,
        cql: Cql,
        values: impl SerializeRow,
        effect: Effect,
    ) -> PortResult<QueryResult> {
        let connected = self.link.get(op).await?.connection;
        let statement = self.prepared(op, &connected, cql).await?;
        let answer = connected.session.execute_unpaged(&statement, values).await;
        answer.map_err(|error| failed(op, &self.route, effect, error))
    }

    async fn prepared(
        &self,
        op: &'static str,
        connected: &Connected,
        cql: Cql,
    ) -> PortResult<PreparedStatement> {
        let known = {
            let prepared = connected.prepared.read();
            let prepared = prepared.unwrap_or_else(PoisonError::into_inner);
            prepared.get(&cql).cloned()
        };
        if let Some(statement) = known {
            return Ok(statement);
        }
        let text = cql.text.replace("KEYSPACE", &self.route.keyspace);
        let statement = connected.session.prepare(text).await;
        let statement = statement.map_err(|error| unprepared(op, &self.route, error))?;
        let statement = self.tuned(statement, connected, cql.mode);
        let prepared = connected.prepared.write();
        let mut prepared = prepared.unwrap_or_else(PoisonError::into_inner);
        prepared.insert(cql, statement.clone());
        Ok(statement)
    }

    fn tuned(
        &self,
        mut statement: PreparedStatement,
        connected: &Connected,
        mode: Mode,
    ) -> PreparedStatement {
        let serial = serial_consistency(&self.settings);
        match mode {
            Mode::Read | Mode::Write => statement.set_is_idempotent(true),
            Mode::SerialRead => {
                statement.set_is_idempotent(true);
                statement.set_consistency(match serial {
                    SerialConsistency::Serial => Consistency::Serial,
                    SerialConsistency::LocalSerial => Consistency::LocalSerial,
                });
            }
            // Repeated by those who can tell what became of it, in the time that is left of the call.
            Mode::Conditional => {
                statement.set_execution_profile_handle(Some(connected.fallthrough.clone()));
                statement.set_request_timeout(Some(self.settings.call_timeout / 2));
            }
        }
        statement
    }
}

fn read_decision(op: &'static str, answer: PortResult<QueryResult>) -> PortResult<Decided> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) if error.kind.is_without_effect() => return Err(error),
        Err(error) => return Ok(Decided::Unknown(error)),
    };
    let rows = answer
        .into_rows_result()
        .map_err(|error| corrupt(op, error))?;
    let row = rows
        .first_row::<Row>()
        .map_err(|error| corrupt(op, error))?;
    match row.columns.first() {
        Some(Some(CqlValue::Boolean(true))) => Ok(Decided::Applied),
        Some(Some(CqlValue::Boolean(false))) => Ok(Decided::Refused),
        other => Err(corrupt(op, format!("{other:?}"))),
    }
}
