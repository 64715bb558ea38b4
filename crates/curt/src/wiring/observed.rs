use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use curt_core::names::metric;
use curt_core::ports::{
    ChangeReply, ClaimReply, InsertReply, InsertRequest, LinkCounts, LinkIndex, LinkPorts,
    LinkStore, LinkTotals, ListPage, ListQuery, Released, SeededLinks, SpendReply,
};
use curt_core::{ErrorKind, Link, LinkId, PortResult, Revision, UnixMillis};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Failures of engines, by backend, operation and kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortErrors {
    counts: Family<Labels, Counter>,
    write_failed: Arc<AtomicBool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    backend: &'static str,
    op: &'static str,
    kind: &'static str,
}

impl PortErrors {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let errors = Self::default();
        registry.register(
            metric::PORT_ERRORS,
            "Failures of an engine, by backend, operation and kind",
            errors.counts.clone(),
        );
        errors
    }

    /// Says whether a write has failed since this was asked last, for reasons that other writes would meet, too.
    #[must_use]
    pub(crate) fn take_write_failed(&self) -> bool {
        self.write_failed.swap(false, Ordering::Relaxed)
    }

    fn note_write<T>(&self, answer: PortResult<T>) -> PortResult<T> {
        let concerns_others = |kind| match kind {
            ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Corrupt => true,
            ErrorKind::Throttled | ErrorKind::Invalid | ErrorKind::Bug => false,
        };
        if let Err(failure) = &answer
            && concerns_others(failure.kind)
        {
            self.write_failed.store(true, Ordering::Relaxed);
        }
        self.note(answer)
    }

    fn note<T>(&self, answer: PortResult<T>) -> PortResult<T> {
        if let Err(failure) = &answer {
            let labels = Labels {
                backend: failure.backend,
                op: failure.op,
                kind: failure.kind.as_str(),
            };
            self.counts.get_or_create(&labels).inc();
        }
        answer
    }
}

/// A port whose failures are counted.
struct Observed<P: ?Sized> {
    inner: Arc<P>,
    errors: PortErrors,
}

/// The same ports, with their failures counted.
#[must_use]
pub(crate) fn observed_links(ports: LinkPorts, errors: &PortErrors) -> LinkPorts {
    fn observed<P: ?Sized>(inner: Arc<P>, errors: &PortErrors) -> Arc<Observed<P>> {
        let errors = errors.clone();
        Arc::new(Observed { inner, errors })
    }
    LinkPorts {
        store: observed(ports.store, errors),
        index: observed(ports.index, errors),
        totals: observed(ports.totals, errors),
        seeded: ports.seeded.map(|seeded| observed(seeded, errors) as _),
    }
}

#[async_trait]
impl LinkStore for Observed<dyn LinkStore> {
    async fn insert(&self, request: InsertRequest) -> PortResult<InsertReply> {
        self.errors.note_write(self.inner.insert(request).await)
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        self.errors.note(self.inner.get(id).await)
    }

    async fn update(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        self.errors.note_write(self.inner.update(link, seen).await)
    }

    async fn delete(
        &self,
        id: &LinkId,
        seen: Option<Revision>,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        self.errors
            .note_write(self.inner.delete(id, seen, now).await)
    }

    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
        self.errors
            .note_write(self.inner.spend_click(id, seen).await)
    }

    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64> {
        self.errors.note(self.inner.clicks_spent(id).await)
    }

    async fn ping(&self) -> PortResult<()> {
        self.errors.note(self.inner.ping().await)
    }

    async fn ping_reads(&self) -> PortResult<()> {
        self.errors.note(self.inner.ping_reads().await)
    }
}

#[async_trait]
impl LinkIndex for Observed<dyn LinkIndex> {
    async fn list(&self, query: &ListQuery) -> PortResult<ListPage> {
        self.errors.note(self.inner.list(query).await)
    }

    async fn expired(&self, now: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>> {
        self.errors.note(self.inner.expired(now, limit).await)
    }

    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        now: UnixMillis,
    ) -> PortResult<Vec<LinkId>> {
        self.errors.note(self.inner.purge(batch, now).await)
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<Released>> {
        self.errors.note(self.inner.release(before, limit).await)
    }
}

#[async_trait]
impl SeededLinks for Observed<dyn SeededLinks> {
    async fn seed(&self, ids: &[LinkId]) -> PortResult<u64> {
        self.errors.note(self.inner.seed(ids).await)
    }

    async fn claim(&self, request: InsertRequest) -> PortResult<ClaimReply> {
        self.errors.note_write(self.inner.claim(request).await)
    }
}

#[async_trait]
impl LinkTotals for Observed<dyn LinkTotals> {
    async fn counts(&self) -> PortResult<LinkCounts> {
        self.errors.note(self.inner.counts().await)
    }
}

#[cfg(test)]
mod tests {
    use curt_core::ports::ListQuery;

    use super::*;
    use curt_memory::MemoryLinkStore;

    #[tokio::test]
    async fn a_failure_is_passed_on_and_counted() {
        let mut registry = Registry::default();
        let errors = PortErrors::register(&mut registry);
        let links = observed_links(Arc::new(MemoryLinkStore::new()).into(), &errors);
        let foreign = ListQuery {
            cursor: Some("not a cursor".into()),
            limit: 1,
            ..ListQuery::default()
        };
        assert!(links.store.ping().await.is_ok());
        assert!(links.index.list(&foreign).await.is_err());
        let mut shown = String::new();
        prometheus_client::encoding::text::encode(&mut shown, &registry).unwrap();
        let counted = shown.lines().filter(|line| !line.starts_with('#'));
        let counted: Vec<&str> = counted.collect();
        assert_eq!(counted.len(), 1, "{shown}");
        assert!(counted[0].starts_with("curt_port_errors_total{backend=\"memory\""));
        assert!(counted[0].ends_with("kind=\"invalid\"} 1"), "{shown}");
    }
}
