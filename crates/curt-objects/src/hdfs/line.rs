use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use curt_core::{ErrorKind, PortResult};
use hdfs_native::{Client, HdfsError};

use super::address::Route;
use super::{HdfsSettings, failure};
use crate::key_layout::Operation;
use crate::sealed::PUBLISHED_SUFFIX;

/// The way to the cluster. The client itself waits for answers without end, so that every call has its limit here.
#[derive(Debug)]
pub(super) struct Line {
    route: Route,
    pub(super) settings: HdfsSettings,
    client: Mutex<Option<Client>>,
}

impl Line {
    pub(super) fn new(route: Route, settings: HdfsSettings) -> Self {
        Self {
            route,
            settings,
            client: Mutex::default(),
        }
    }

    pub(super) fn client(&self, operation: Operation) -> PortResult<Client> {
        let mut held = self.held();
        if let Some(client) = &*held {
            return Ok(client.clone());
        }
        let client = self.route.client(self.settings, operation)?;
        *held = Some(client.clone());
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
        match tokio::time::timeout(limit, work).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(failure::of(operation, error)),
            Err(_) => {
                // A connection that went silent is never noticed by the client: the next call makes a new one.
                *self.held() = None;
                let detail = format!("no answer within {limit:?}: check that the cluster runs");
                Err(operation.error(ErrorKind::Timeout, detail))
            }
        }
    }

    pub(super) async fn has(&self, path: &str, operation: Operation) -> PortResult<bool> {
        let client = self.client(operation)?;
        let looking = failure::absent_as_none(client.get_file_info(path));
        Ok(self.ask(operation, looking).await?.is_some())
    }

    /// Where the published file is, or would be.
    pub(super) fn published(&self, name: &str) -> String {
        format!("{}/{name}{}", self.route.folder, PUBLISHED_SUFFIX)
    }

    /// A path that only its writer knows.
    pub(super) fn draft(&self, name: &str) -> String {
        let own: u64 = rand::random();
        format!(
            "{}/.{name}.{own:016x}{}",
            self.route.folder,
            super::DRAFT_SUFFIX
        )
    }

    pub(super) fn folder(&self) -> &str {
        &self.route.folder
    }

    fn held(&self) -> MutexGuard<'_, Option<Client>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
