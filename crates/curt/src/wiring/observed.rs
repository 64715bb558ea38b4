use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use curt_core::names::metric;
use curt_core::ports::{
    BeginReply, ChangeReply, CreationOutcome, CreationPlan, Idempotency, IdempotentRequest,
    Inserted, LinkChange, LinkCounts, LinkIndex, LinkPorts, LinkStore, LinkTotals, ListOrder,
    ListPage, ListQuery, RequestToken, SeededLinks, SpendReply,
};
use curt_core::{ErrorKind, Link, LinkId, OwnerId, PortError, PortResult, Revision, UnixMillis};
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
            metric::STORE_ERRORS,
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
        answer.inspect_err(|failure| self.count_write(failure))
    }

    /// As [`note_write`](Self::note_write), also of a write of which a part failed.
    fn note_each<T>(
        &self,
        answer: PortResult<Vec<PortResult<T>>>,
    ) -> PortResult<Vec<PortResult<T>>> {
        let answer = self.note_write(answer)?;
        if let Some(failure) = answer.iter().find_map(|one| one.as_ref().err()) {
            self.count_write(failure);
        }
        Ok(answer)
    }

    fn note<T>(&self, answer: PortResult<T>) -> PortResult<T> {
        answer.inspect_err(|failure| self.count(failure))
    }

    fn count_write(&self, failure: &PortError) {
        let concerns_others = match failure.kind {
            ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Corrupt => true,
            ErrorKind::Throttled | ErrorKind::StaleEpoch | ErrorKind::Invalid | ErrorKind::Bug => {
                false
            }
        };
        if concerns_others {
            self.write_failed.store(true, Ordering::Relaxed);
        }
        self.count(failure);
    }

    fn count(&self, failure: &PortError) {
        let labels = Labels {
            backend: failure.backend,
            op: failure.op,
            kind: failure.kind.as_str(),
        };
        self.counts.get_or_create(&labels).inc();
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
        idempotency: observed(ports.idempotency, errors),
        seeded: ports.seeded.map(|seeded| observed(seeded, errors) as _),
        homes: ports.homes,
        nodes: ports
            .nodes
            .into_iter()
            .map(|node| observed(node, errors) as _)
            .collect(),
    }
}

/// Implements a port for [`Observed`]: `note_write` where the failure of a write tells of others, `note` elsewhere.
macro_rules! observe {
    ($port:ident: $(fn $method:ident($($name:ident: $type:ty),*) -> $reply:ty = $note:ident;)+) => {
        #[async_trait]
        impl $port for Observed<dyn $port> {
            $(async fn $method(&self, $($name: $type),*) -> PortResult<$reply> {
                self.errors.$note(self.inner.$method($($name),*).await)
            })+
        }
    };
}

observe!(LinkStore:
    fn insert_if_absent(links: Vec<Link>, token: Option<RequestToken>) -> Vec<Inserted> = note_write;
    fn insert_each(links: Vec<Link>, token: Option<RequestToken>) -> Vec<PortResult<Inserted>> = note_each;
    fn get(id: &LinkId) -> Option<Link> = note;
    fn get_nearby(id: &LinkId) -> Option<Link> = note;
    fn get_many(ids: &[LinkId]) -> Vec<Option<Link>> = note;
    fn update_at(link: Link, seen: Revision) -> ChangeReply = note_write;
    fn hand_over_at(id: &LinkId, seen: Revision, owner: OwnerId, now: UnixMillis) -> ChangeReply = note_write;
    fn delete_at(id: &LinkId, seen: Revision, now: UnixMillis) -> ChangeReply = note_write;
    fn spend_click(id: &LinkId, seen: Revision) -> SpendReply = note_write;
    fn clicks_spent(id: &LinkId) -> u64 = note;
    fn clicks_spent_many(ids: &[LinkId]) -> Vec<u64> = note;
    fn ping() -> () = note;
    fn ping_reads() -> () = note;
);

observe!(LinkIndex:
    fn list(query: &ListQuery) -> ListPage = note;
    fn cursor_behind(link: &Link, order: ListOrder) -> Option<Box<str>> = note;
    fn ended(before: UnixMillis, limit: usize) -> Vec<(LinkId, Revision)> = note;
    fn purge(batch: &[(LinkId, Revision)], before: UnixMillis, now: UnixMillis) -> Vec<LinkChange> = note;
    fn release(before: UnixMillis, limit: usize) -> Vec<LinkChange> = note;
);

observe!(LinkTotals:
    fn counts() -> LinkCounts = note;
);

observe!(Idempotency:
    fn begin(request: &IdempotentRequest, plan: &CreationPlan) -> BeginReply = note_write;
    fn replace_plan(request: &IdempotentRequest, plan: &CreationPlan) -> CreationPlan = note_write;
    fn finish(
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: CreationOutcome
    ) -> CreationOutcome = note_write;
    fn cancel(request: &IdempotentRequest, token: RequestToken) -> bool = note_write;
    fn forget_before(before: UnixMillis, limit: usize) -> usize = note;
);

observe!(SeededLinks:
    fn seed(ids: &[LinkId]) -> u64 = note;
    fn claim(links: Vec<Link>) -> Vec<Link> = note_write;
);

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
        assert!(counted[0].starts_with("curt_store_errors_total{backend=\"memory\""));
        assert!(counted[0].ends_with("kind=\"invalid\"} 1"), "{shown}");
    }
}
