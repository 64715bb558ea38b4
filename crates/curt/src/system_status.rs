//! This process as the page `/admin/system` shows it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_http::{InstanceStatus, ProcessStatus, StoreStatus, SystemSource};
use curt_keys::KeySupply;
use prometheus_client::registry::Registry;

use crate::roles::Roles;
use crate::wiring::Engines;

/// An engine that takes longer is shown as one that does not answer.
const TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct ProcessReport {
    roles: String,
    engines: Arc<Engines>,
    supply: Arc<KeySupply>,
}

impl ProcessReport {
    pub(crate) fn new(roles: &Roles, engines: &Arc<Engines>, supply: &Arc<KeySupply>) -> Self {
        Self {
            roles: roles.to_string(),
            engines: Arc::clone(engines),
            supply: Arc::clone(supply),
        }
    }

    pub(crate) fn with(self, registry: Arc<Registry>) -> SystemSource {
        SystemSource::new(Arc::new(self), registry)
    }
}

#[async_trait]
impl ProcessStatus for ProcessReport {
    fn roles(&self) -> &str {
        &self.roles
    }

    async fn stores(&self) -> Vec<StoreStatus> {
        let reached = tokio::time::timeout(TIMEOUT, self.engines.reach()).await;
        let Ok(reached) = reached else {
            return vec![StoreStatus {
                address: "engines".to_owned(),
                failure: Some(format!("no answer from all of them within {TIMEOUT:?}")),
            }];
        };
        let status = |(address, answer): (_, PortResult<()>)| StoreStatus {
            address: format!("{address}"),
            failure: answer.err().map(|error| error.to_string()),
        };
        reached.into_iter().map(status).collect()
    }

    async fn instances(&self) -> Vec<InstanceStatus> {
        let read = tokio::time::timeout(TIMEOUT, self.supply.instances()).await;
        let instances = read.unwrap_or_default().into_iter();
        instances
            .map(|instance| InstanceStatus {
                name: instance.name.into(),
                about: instance.who.into(),
                buffered: instance.holdings.buffered,
                conflicts: instance.conflicts,
                fallbacks: instance.fallbacks,
            })
            .collect()
    }
}
