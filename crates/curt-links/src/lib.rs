//! The LINKS line: [`admit`], [`create`], [`resolve`], [`purge`], and beside them what owners do with their
//! links (`manage`), where nobody's may lead ([`blocklist`]), and what processes tell each other ([`invalidate`]).
//!
//! [`Links`] is the side that writes, [`Resolver`] the side that redirects. They meet in three places only: the
//! store, the [`LinkPolicy`] that both go by, and [`Resolver::invalidate`], which `Links` calls after every write,
//! acknowledged or not, so that no copy from before it is served afterwards.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod admit;
pub mod blocklist;
pub mod create;
mod error;
pub mod invalidate;
mod manage;
mod metrics;
mod operations;
mod policy;
pub mod purge;
pub mod resolve;
mod settings;
pub mod shared_cache;
mod user_removal;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use curt_core::ports::{LinkChange, LinkPorts, LinkStore};
use curt_core::{Clock, ErrorKind, FieldError, OwnerId, PortError, PortResult, UnixMillis};
use curt_keys::KeySupply;

use crate::admit::AdmissionRules;
use crate::invalidate::WriteOutcome;

pub use admit::{EditLink, Expiry, NewLink, OwnHost, OwnHostError};
pub use blocklist::{Blocklist, BlocklistError, BlocklistFile};
pub use create::{Created, IdempotencyKey, LinkCreator};
pub use error::{AliasHolder, LinkError};
pub use manage::{LinksChange, LinksOfLeaver, TagChange, TagCounts, TagReplacement, Who};
pub use metrics::LinkMetrics;
pub use operations::{LinkCaller, LinkDraft, LinkEdit, LinkOperations, NewPassword};
pub use policy::LinkPolicy;
pub use purge::{PurgePorts, PurgeSettings, Purger};
pub use resolve::{Resolution, ResolveMetrics, Resolver, ResolverSettings};
pub use settings::LinkSettings;
pub use user_removal::UserRemovalError;

/// Creates and manages links.
pub struct Links {
    settings: LinkSettings,
    ports: LinkPorts,
    supply: Arc<KeySupply>,
    policy: Arc<LinkPolicy>,
    resolver: Arc<Resolver>,
    clock: Arc<dyn Clock>,
    metrics: LinkMetrics,
    listener: OnceLock<OwnHost>,
}

impl Links {
    pub fn new(
        settings: LinkSettings,
        ports: LinkPorts,
        supply: Arc<KeySupply>,
        policy: Arc<LinkPolicy>,
        resolver: Arc<Resolver>,
        clock: Arc<dyn Clock>,
        metrics: LinkMetrics,
    ) -> Arc<Self> {
        Arc::new(Self {
            settings,
            ports,
            supply,
            policy,
            resolver,
            clock,
            metrics,
            listener: OnceLock::new(),
        })
    }

    /// Tells where the server listens, with the port that the system chose: targets must not lead there.
    pub fn listening_on(&self, address: SocketAddr) {
        self.listener.get_or_init(|| address.into());
    }

    #[must_use]
    pub fn settings(&self) -> &LinkSettings {
        &self.settings
    }

    /// Returns what is wrong with a link that a visitor without credentials typed, as far as it can be told to anybody:
    /// not whether its target is blocked.
    #[must_use]
    pub fn check_typed(&self, target: &str, alias: Option<&str>) -> Vec<FieldError> {
        let blocklist = Blocklist::default();
        let rules = self.admission_rules(&blocklist, self.clock.now());
        let typed = NewLink {
            target: target.to_owned(),
            alias: alias.map(str::to_owned),
            ..NewLink::default()
        };
        let checked = admit::new_link(&rules, OwnerId::ANONYMOUS, typed);
        checked.err().unwrap_or_default()
    }

    fn admission_rules<'a>(
        &'a self,
        blocklist: &'a Blocklist,
        now: UnixMillis,
    ) -> AdmissionRules<'a> {
        AdmissionRules {
            settings: &self.settings,
            blocklist,
            listener: self.listener.get(),
            now,
        }
    }

    /// Runs a write to its end and then drops the copies of the links that it names, whether it succeeded or not: even
    /// a failed write may have happened. Other processes are told to do the same; `success` is what they are told of a
    /// write that succeeded.
    ///
    /// A task of its own, because a request's future is dropped when its client goes away. The store would go on with
    /// what it was given, and a copy from before would be served for ever (L-2).
    async fn write_and_invalidate<T, F>(
        &self,
        success: fn(&T) -> WriteOutcome,
        write: impl FnOnce(Arc<dyn LinkStore>) -> F,
    ) -> PortResult<T>
    where
        F: Future<Output = (Vec<LinkChange>, PortResult<T>)> + Send + 'static,
        T: Send + 'static,
    {
        let writing = write(Arc::clone(&self.ports.store));
        let resolver = Arc::clone(&self.resolver);
        #[expect(
            clippy::disallowed_methods,
            reason = "goes on when its caller leaves: what is written must be invalidated"
        )]
        let task = tokio::spawn(async move {
            let (changes, reply) = writing.await;
            resolver.invalidate(&changes);
            let outcome = match &reply {
                Ok(reply) => success(reply),
                Err(_) => WriteOutcome::Unknown,
            };
            resolver.publish(changes, outcome).await;
            reply
        });
        task.await.unwrap_or_else(|died| {
            let what = "a write broke off; please report this";
            Err(PortError::new(ErrorKind::Bug, "links", "write links", what).with_source(died))
        })
    }
}
