//! Everything that a test needs, wired as the executable does it.

use std::sync::Arc;
use std::time::Duration;

use curt_core::clock::ManualClock;
use curt_core::ports::{LinkChange, LinkIndex, LinkStore};
use curt_core::{
    Alphabet, Clock, DomainId, GoneCause, Key, KeyOrigin, LinkId, LinkRef, OwnerId, Revision,
    UnixMillis,
};
use curt_keys::{HeldLeases, KeyMetrics, KeyPorts, KeySettings, KeySupply, Strategy, SuppliedKey};
use curt_links::{
    Created, Expiry, LinkCreator, LinkError, LinkMetrics, LinkPolicy, LinkSettings, Links, NewLink,
    PurgePorts, PurgeSettings, Purger, Resolution, ResolveMetrics, Resolver, ResolverSettings, Who,
};
use curt_memory::{
    MemoryAccounts, MemoryCursor, MemoryHeartbeats, MemoryKeyLedger, MemoryKeyPool, MemoryLeases,
    MemoryLinkStore,
};
use curt_testkit::keys::random_supply;

use crate::gated::{GatedStore, gated_store};

pub(crate) const START: UnixMillis = UnixMillis(1_800_000_000_000);
pub(crate) const ANN: LinkCreator = maker(1);
pub(crate) const BOB: LinkCreator = maker(2);
pub(crate) const EXPIRED: Resolution = Resolution::Gone(GoneCause::Expired);
pub(crate) const DISABLED: Resolution = Resolution::Gone(GoneCause::Disabled);
pub(crate) const DELETED: Resolution = Resolution::Gone(GoneCause::Deleted);
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3_600);

pub(crate) struct World {
    pub(crate) store: Arc<GatedStore>,
    pub(crate) permissions: Arc<MemoryAccounts>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) supply: Arc<KeySupply>,
    pub(crate) policy: Arc<LinkPolicy>,
    pub(crate) resolver: Arc<Resolver>,
    pub(crate) links: Arc<Links>,
    pub(crate) metrics: LinkMetrics,
}

pub(crate) struct Plan {
    pub(crate) resolver: ResolverSettings,
    pub(crate) links: LinkSettings,
    pub(crate) supply: Arc<KeySupply>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            resolver: ResolverSettings::default(),
            // Deletions are for good here; `lifecycle.rs` has the grace period.
            links: LinkSettings {
                grace: Duration::ZERO,
                ..LinkSettings::default()
            },
            supply: random_supply(Alphabet::Base62, 7),
        }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Plan::default())
    }

    pub(crate) fn with(plan: Plan) -> Self {
        let store = gated_store();
        let clock = Arc::new(ManualClock::at(START));
        let metrics = LinkMetrics::default();
        let policy = Arc::new(LinkPolicy::default());
        let resolver = Resolver::new(
            plan.resolver,
            store.clone(),
            policy.clone(),
            clock.clone(),
            ResolveMetrics::default(),
        );
        let links = Links::new(
            plan.links,
            store.clone().into(),
            plan.supply.clone(),
            policy.clone(),
            resolver.clone(),
            clock.clone(),
            metrics.clone(),
        );
        Self {
            store,
            permissions: Arc::new(MemoryAccounts::new()),
            clock,
            supply: plan.supply,
            policy,
            resolver,
            links,
            metrics,
        }
    }

    pub(crate) fn purger(&self, settings: PurgeSettings) -> Arc<Purger> {
        let leases = MemoryLeases::new(self.clock.clone());
        self.purger_of(settings, Vec::new(), leases)
    }

    /// A purger over several nodes, of a process that holds these leases.
    pub(crate) fn purger_of(
        &self,
        settings: PurgeSettings,
        nodes: Vec<Arc<dyn LinkIndex>>,
        leases: MemoryLeases,
    ) -> Arc<Purger> {
        Purger::new(
            settings,
            PurgePorts {
                index: self.store.clone(),
                nodes,
                leases: Arc::new(HeldLeases::new(Arc::new(leases), DAY)),
                idempotency: self.store.clone(),
                permissions: self.permissions.clone(),
                clock: self.clock.clone(),
                clock_guard: None,
            },
            self.supply.clone(),
            self.resolver.clone(),
            self.metrics.clone(),
        )
    }

    pub(crate) async fn alias(&self, alias: &str, target: &str) -> Created {
        let new = NewLink {
            alias: Some(alias.into()),
            ..new(target)
        };
        self.links.create(ANN, new, None).await.unwrap()
    }

    pub(crate) async fn resolve(&self, key: &str) -> Resolution {
        self.resolver.resolve(named(key)).await.unwrap()
    }

    pub(crate) fn invalidate(&self, key: &str) {
        let change = LinkChange {
            id: id(key),
            revision: Revision::FIRST,
        };
        self.resolver.invalidate(&[change]);
    }

    pub(crate) fn cached(&self, key: &str) -> Option<String> {
        let hit = self.resolver.cached(named(key), self.clock.now())?;
        Some(hit.location().to_owned())
    }

    pub(crate) async fn stored(&self, key: &str) -> Option<curt_core::Link> {
        self.store.get(&id(key)).await.unwrap()
    }
}

const fn maker(owner: u64) -> LinkCreator {
    LinkCreator {
        owner: OwnerId(owner),
        made_with: None,
    }
}

pub(crate) fn own(maker: LinkCreator) -> Who {
    Who::Owner(maker.owner)
}

pub(crate) fn new(target: &str) -> NewLink {
    NewLink {
        target: target.into(),
        ..NewLink::default()
    }
}

pub(crate) fn expiring(target: &str, after: Duration) -> NewLink {
    NewLink {
        expires_at: Expiry::At(START.plus(after)),
        ..new(target)
    }
}

pub(crate) fn named(key: &str) -> LinkRef<'_> {
    LinkRef {
        domain: DomainId::DEFAULT,
        key,
    }
}

pub(crate) fn id(key: &str) -> LinkId {
    named(key).to_id().unwrap()
}

pub(crate) fn generated(key: &str) -> SuppliedKey {
    SuppliedKey {
        key: Key::parse(key).unwrap(),
        origin: KeyOrigin::Ledger,
    }
}

/// The codes of the mistakes that a request was refused for.
pub(crate) fn codes<T: std::fmt::Debug>(refused: Result<T, LinkError>) -> Vec<&'static str> {
    match refused {
        Err(LinkError::Invalid(mistakes)) => mistakes.iter().map(|mistake| mistake.code).collect(),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

pub(crate) fn location(resolution: &Resolution) -> Option<&str> {
    match resolution {
        Resolution::Live(hit) => Some(hit.location()),
        Resolution::Guarded(_)
        | Resolution::Absent
        | Resolution::Scheduled
        | Resolution::Gone(_)
        | Resolution::Blocked => None,
    }
}

/// A real supply over memory, with what is in `pool`; nothing is minted.
pub(crate) async fn supply(strategy: Strategy, pool: MemoryKeyPool) -> Arc<KeySupply> {
    let clock = Arc::new(ManualClock::at(START));
    let ports = KeyPorts {
        ledgers: vec![Arc::new(MemoryKeyLedger::new())],
        pools: vec![Arc::new(pool)],
        links: Some(Arc::new(MemoryLinkStore::new()).into()),
        files: None,
        cursor: Arc::new(MemoryCursor::new()),
        leases: Arc::new(MemoryLeases::new(clock.clone())),
        heartbeats: Arc::new(MemoryHeartbeats::new(clock.clone())),
        clock,
        who: "test".into(),
    };
    let settings = KeySettings {
        strategy,
        ..KeySettings::default()
    };
    let metrics = KeyMetrics::default();
    KeySupply::open(settings, ports, metrics).await.unwrap()
}
