use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use curt_core::{ErrorKind, PortResult};
use futures_util::FutureExt as _;
use hdfs_native::{Client, HdfsError};

use super::address::HdfsAddress;
use super::{HdfsSettings, failure};
use crate::key_layout::Operation;
use crate::sealed::PUBLISHED_SUFFIX;

/// The way to the cluster. The client itself waits for answers without end, so that every call has its limit here.
#[derive(Debug)]
pub(super) struct HdfsConnection {
    address: HdfsAddress,
    pub(super) settings: HdfsSettings,
    client: Mutex<Option<Client>>,
}

impl HdfsConnection {
    pub(super) fn new(address: HdfsAddress, settings: HdfsSettings) -> Self {
        Self {
            address,
            settings,
            client: Mutex::default(),
        }
    }

    pub(super) fn client(&self, operation: Operation) -> PortResult<Client> {
        let mut client_slot = self.locked_client();
        if let Some(client) = &*client_slot {
            return Ok(client.clone());
        }
        let client = self.address.client(self.settings, operation)?;
        *client_slot = Some(client.clone());
        Ok(client)
    }

    /// The answer of a NameNode.
    pub(super) async fn ask<T>(
        &self,
        operation: Operation,
        question: impl Future<Output = Result<T, HdfsError>>,
    ) -> PortResult<T> {
        let limit = self.settings.answer_timeout;
        self.within(limit, operation, question).await
    }

    /// What also moves data from or to DataNodes.
    pub(super) async fn transfer<T>(
        &self,
        operation: Operation,
        transfer: impl Future<Output = Result<T, HdfsError>>,
    ) -> PortResult<T> {
        let limit = self.settings.transfer_timeout;
        self.within(limit, operation, transfer).await
    }

    async fn within<T>(
        &self,
        limit: Duration,
        operation: Operation,
        work: impl Future<Output = Result<T, HdfsError>>,
    ) -> PortResult<T> {
        // The client panics at a file name that is no UTF-8: an answer must not end the task that asked.
        let work = AssertUnwindSafe(work).catch_unwind();
        let (kind, detail) = match tokio::time::timeout(limit, work).await {
            Ok(Ok(Ok(answer))) => return Ok(answer),
            Ok(Ok(Err(error))) => return Err(failure::of(operation, error)),
            Ok(Err(_)) => (
                ErrorKind::Unavailable,
                "its answer cannot be read: check that this is a NameNode of a known version"
                    .into(),
            ),
            Err(_) => (
                ErrorKind::Timeout,
                format!("no answer within {limit:?}: check that the cluster runs"),
            ),
        };
        // A connection that went silent is never noticed by the client: the next call makes a new one.
        *self.locked_client() = None;
        Err(operation.error(kind, detail))
    }

    pub(super) async fn has(&self, path: &str, operation: Operation) -> PortResult<bool> {
        let client = self.client(operation)?;
        let looking = failure::absent_as_none(client.get_file_info(path));
        Ok(self.ask(operation, looking).await?.is_some())
    }

    /// Where the published file is, or would be.
    pub(super) fn published(&self, name: &str) -> String {
        format!("{}/{name}{}", self.address.folder, PUBLISHED_SUFFIX)
    }

    /// A path that only its writer knows.
    pub(super) fn draft(&self, name: &str) -> String {
        let own: u64 = rand::random();
        format!(
            "{}/.{name}.{own:016x}{}",
            self.address.folder,
            super::DRAFT_SUFFIX
        )
    }

    pub(super) fn folder(&self) -> &str {
        &self.address.folder
    }

    fn locked_client(&self) -> MutexGuard<'_, Option<Client>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
