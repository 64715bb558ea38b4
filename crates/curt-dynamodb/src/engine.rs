//! One client, and the ways in which items are read and written.

use std::fmt;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use curt_adapter_kit::Effect;
use curt_adapter_kit::reconnect::Reconnecting;
use curt_adapter_kit::wide_column::{Deadlines, Decided, pause};
use curt_core::{ErrorKind, PortError, PortResult};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::address::Route;
use crate::connect::connect;
use crate::failure::{BACKEND, CONDITION, failed, is_conflict, throttled};
use crate::item::{Item, Key, Table};
use crate::settings::DynamoDbSettings;
use crate::write::{Expressions, Write, WriteKind};

/// Writes that one transaction may have.
pub(crate) const TRANSACTION_MAX: usize = 100;

/// A service whose tables are looked at, or made, with the first call.
pub(crate) struct Engine {
    pub(crate) route: Arc<Route>,
    pub(crate) settings: Arc<DynamoDbSettings>,
    pub(crate) deadlines: Deadlines,
    client: Reconnecting<Client>,
    permits: Semaphore,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({})", self.route)
    }
}

/// Why a write was not acknowledged.
enum Refusal {
    Condition,
    /// A transaction on the item goes on: the write may be tried again as it is.
    Conflict,
    Failed(PortError),
}

impl Engine {
    pub(crate) fn new(route: Route, settings: &DynamoDbSettings) -> Arc<Self> {
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
            permits: Semaphore::new(settings.connections.get()),
            client: Reconnecting::new(connect),
            deadlines,
            route,
            settings,
        })
    }

    /// The client, once the tables are there, and the right to send one request.
    pub(crate) async fn client(
        &self,
        op: &'static str,
    ) -> PortResult<(Client, SemaphorePermit<'_>)> {
        let client = self.client.get(op).await?.connection;
        let permit = self.permits.acquire().await.map_err(|closed| {
            let detail = "the requests of this client were ended; please report this";
            PortError::new(ErrorKind::Bug, BACKEND, op, detail).with_source(closed)
        })?;
        Ok((client, permit))
    }

    /// The full name of a table.
    pub(crate) fn table(&self, table: Table) -> String {
        format!("{}-{}", self.route.prefix, table.name())
    }

    /// The item as it is now.
    pub(crate) async fn get(&self, op: &'static str, key: &Key) -> PortResult<Option<Item>> {
        let (client, _permit) = self.client(op).await?;
        let request = client
            .get_item()
            .table_name(self.table(key.table))
            .set_key(Some(key.to_attributes()))
            .consistent_read(true);
        let answer = request.send().await;
        let answer = answer.map_err(|error| failed(op, &self.route, Effect::None, error))?;
        Ok(answer.item.map(|item| Item::new(op, item)))
    }

    /// A write that may be repeated, and whose refusal does not matter.
    pub(crate) async fn write(
        &self,
        op: &'static str,
        effect: Effect,
        write: &Write,
    ) -> PortResult<()> {
        loop {
            match self.send(op, effect, write).await {
                Ok(()) | Err(Refusal::Condition) => return Ok(()),
                Err(Refusal::Conflict) => pause().await,
                Err(Refusal::Failed(error)) => return Err(error),
            }
        }
    }

    /// A conditional write. Fails when it has certainly changed nothing.
    pub(crate) async fn decide(&self, op: &'static str, write: &Write) -> PortResult<Decided> {
        loop {
            let sent = self.send(op, Effect::Unknown, write).await;
            if let Some(decided) = read_decision(sent) {
                return decided;
            }
            pause().await;
        }
    }

    /// Writes, [`TRANSACTION_MAX`] at most, in one transaction: all are applied if every condition holds, or none. Fails
    /// when it has certainly changed nothing.
    pub(crate) async fn decide_all(
        &self,
        op: &'static str,
        writes: &[Write],
    ) -> PortResult<Decided> {
        loop {
            let sent = self.send_all(op, writes).await;
            if let Some(decided) = read_decision(sent) {
                return decided;
            }
            pause().await;
        }
    }

    async fn send(&self, op: &'static str, effect: Effect, write: &Write) -> Result<(), Refusal> {
        let (client, _permit) = self.client(op).await.map_err(Refusal::Failed)?;
        let table = self.table(write.key.table);
        let Expressions {
            condition,
            update,
            names,
            values,
        } = write.to_expressions();
        match &write.kind {
            WriteKind::Put(_) => {
                let request = client
                    .put_item()
                    .table_name(table)
                    .set_item(Some(write.to_item()))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values);
                let sent = request.send().await.map(drop);
                sent.map_err(|error| self.refusal(op, effect, error))
            }
            WriteKind::Update(_) => {
                let request = client
                    .update_item()
                    .table_name(table)
                    .set_key(Some(write.key.to_attributes()))
                    .set_update_expression(update)
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values);
                let sent = request.send().await.map(drop);
                sent.map_err(|error| self.refusal(op, effect, error))
            }
            WriteKind::Delete => {
                let request = client
                    .delete_item()
                    .table_name(table)
                    .set_key(Some(write.key.to_attributes()))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values);
                let sent = request.send().await.map(drop);
                sent.map_err(|error| self.refusal(op, effect, error))
            }
        }
    }

    async fn send_all(&self, op: &'static str, writes: &[Write]) -> Result<(), Refusal> {
        debug_assert!(writes.len() <= TRANSACTION_MAX);
        let writes = writes
            .iter()
            .map(|write| write.to_transaction(op, self.table(write.key.table)));
        let writes: PortResult<Vec<_>> = writes.collect();
        let writes = writes.map_err(Refusal::Failed)?;
        let (client, _permit) = self.client(op).await.map_err(Refusal::Failed)?;
        let request = client
            .transact_write_items()
            .set_transact_items(Some(writes));
        let sent = request.send().await.map(drop);
        sent.map_err(|error| match self.cancellation(op, &error) {
            Some(refusal) => refusal,
            None => self.refusal(op, Effect::Unknown, error),
        })
    }

    fn refusal<E>(&self, op: &'static str, effect: Effect, error: SdkError<E>) -> Refusal
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        match error.code() {
            Some(CONDITION) => Refusal::Condition,
            code if is_conflict(code) => Refusal::Conflict,
            _ => Refusal::Failed(failed(op, &self.route, effect, error)),
        }
    }

    /// Why a transaction was cancelled, if it was: a reason for each of its writes.
    fn cancellation(
        &self,
        op: &'static str,
        error: &SdkError<TransactWriteItemsError>,
    ) -> Option<Refusal> {
        let Some(TransactWriteItemsError::TransactionCanceledException(told)) =
            error.as_service_error()
        else {
            return None;
        };
        let codes = told.cancellation_reasons().iter();
        let codes: Vec<&str> = codes.filter_map(|reason| reason.code()).collect();
        if codes.contains(&"ConditionalCheckFailed") {
            return Some(Refusal::Condition);
        }
        if codes.contains(&"TransactionConflict") {
            return Some(Refusal::Conflict);
        }
        let is_throttling =
            |code: &&&str| matches!(**code, "ThrottlingError" | "ProvisionedThroughputExceeded");
        let code = codes.iter().find(is_throttling)?;
        let (kind, detail) = throttled(&self.route, code);
        Some(Refusal::Failed(PortError::new(kind, BACKEND, op, detail)))
    }
}

/// `None`: to be tried again.
fn read_decision(sent: Result<(), Refusal>) -> Option<PortResult<Decided>> {
    match sent {
        Ok(()) => Some(Ok(Decided::Applied)),
        Err(Refusal::Condition) => Some(Ok(Decided::Refused)),
        Err(Refusal::Conflict) => None,
        Err(Refusal::Failed(error)) if error.kind == ErrorKind::Timeout => {
            Some(Ok(Decided::Unknown(error)))
        }
        Err(Refusal::Failed(error)) => Some(Err(error)),
    }
}
