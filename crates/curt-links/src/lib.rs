//! The LINKS line: [`admit`], [`create`], [`resolve`], [`purge`], and beside them what owners do with their
//! links (`manage`).
//!
//! [`Links`] is the side that writes, [`Resolver`] the side that redirects. They meet in two places only: the store,
//! and [`Resolver::changed`], which `Links` calls after every write, acknowledged or not, so that no copy from before
//! it is served afterwards.

pub mod admit;
pub mod create;
mod error;
mod manage;
mod metrics;
pub mod purge;
pub mod resolve;
mod settings;

use std::sync::Arc;

use curt_core::ports::LinkStore;
use curt_core::{Clock, LinkId};
use curt_keys::KeySupply;

pub use admit::{EditLink, Expiry, FieldError, NewLink, OwnHost, OwnHostError};
pub use create::{Created, OnceKey};
pub use error::LinkError;
pub use metrics::LinkMetrics;
pub use purge::{PurgeSettings, Purger};
pub use resolve::{Hit, Resolution, ResolveMetrics, Resolver, ResolverSettings};
pub use settings::LinkSettings;

/// Creates and manages links.
pub struct Links {
    settings: LinkSettings,
    store: Arc<dyn LinkStore>,
    supply: Arc<KeySupply>,
    resolver: Arc<Resolver>,
    clock: Arc<dyn Clock>,
    metrics: LinkMetrics,
}

impl Links {
    pub fn new(
        settings: LinkSettings,
        store: Arc<dyn LinkStore>,
        supply: Arc<KeySupply>,
        resolver: Arc<Resolver>,
        clock: Arc<dyn Clock>,
        metrics: LinkMetrics,
    ) -> Arc<Self> {
        Arc::new(Self {
            settings,
            store,
            supply,
            resolver,
            clock,
            metrics,
        })
    }

    #[must_use]
    pub fn settings(&self) -> &LinkSettings {
        &self.settings
    }

    fn changed(&self, ids: &[LinkId]) {
        for id in ids {
            self.resolver.changed(id);
        }
    }
}
