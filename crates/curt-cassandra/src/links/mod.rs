//! The rows of links and of requests. When they are written: [`curt_adapter_kit::wide_column::links`].
//!
//! A link is one partition, and every write of it is a lightweight transaction: Cassandra orders these by their ballots.

mod cql;
mod record;
mod requests;

use std::sync::Arc;

use async_trait::async_trait;
use curt_adapter_kit::wide_column::links::{
    LinkPut, LinkRows, PutRow, ReleasedCounts, RowName, ScannedLink, Stored, StoredLink,
};
use curt_adapter_kit::wide_column::{Decided, Mark, ReadMode, ScanPart};
use curt_core::{DomainId, Key, Link, LinkId, PortResult, Revision, ShardId};
use scylla::DeserializeRow;

use self::record::{
    LinkEdit, LinkReplacement, LinkRow, LinkWrite, Release, ReleasedReplacement, ReleasedWrite,
    small,
};
use crate::engine::Engine;
use crate::failure::corrupt;
use crate::scan::HashedRow;

/// Rows that one statement of a scan reads.
const SCANNED_AT_ONCE: i32 = 5_000;
/// The domain of rows that are not of a link, but of released links of the shard that their key is the number of.
const RELEASED_DOMAIN: i64 = -1;

pub(crate) struct CassandraLinks {
    engine: Arc<Engine>,
    namespace: Arc<str>,
}

#[derive(DeserializeRow)]
struct ScannedRow {
    hash: i64,
    namespace: String,
    domain: i64,
    key: String,
    state: i8,
    origin: Option<i8>,
    released: Option<ReleasedCounts>,
}

impl HashedRow for ScannedRow {
    fn hash(&self) -> i64 {
        self.hash
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl ScannedRow {
    fn name(&self, op: &'static str) -> PortResult<RowName> {
        if self.domain != RELEASED_DOMAIN {
            return link_id(op, self.domain, &self.key).map(RowName::Link);
        }
        let shard = self.key.parse().ok().and_then(ShardId::new);
        let shard = shard.map(RowName::Released);
        shard.ok_or_else(|| corrupt(op, "the number of a shard"))
    }
}

/// A link as columns have it.
pub(crate) fn link_id(op: &'static str, domain: i64, key: &str) -> PortResult<LinkId> {
    let key = Key::parse(key).map_err(|error| corrupt(op, error))?;
    Ok(LinkId::new(DomainId(small(op, domain)?), key))
}

impl CassandraLinks {
    pub(crate) fn new(engine: Arc<Engine>, namespace: Arc<str>) -> Self {
        Self { engine, namespace }
    }
}

#[async_trait]
impl LinkRows for CassandraLinks {
    async fn get(
        &self,
        op: &'static str,
        id: &LinkId,
        mode: ReadMode,
    ) -> PortResult<Option<Stored>> {
        let values = (&*self.namespace, i64::from(id.domain.0), id.key.as_str());
        let row: Option<LinkRow> = self.engine.first(op, cql::GET.at(mode), values).await?;
        row.map(|row| row.into_stored(op)).transpose()
    }

    async fn put(
        &self,
        op: &'static str,
        new: &LinkPut<'_>,
        seen: Option<&Stored>,
    ) -> PortResult<Decided> {
        let (engine, namespace) = (&self.engine, &*self.namespace);
        let writers = seen.map(Stored::last_writers);
        match (&new.row, writers) {
            (PutRow::Link(link), None) => {
                let values = LinkWrite::new(namespace, new, link, false);
                engine.decide(op, cql::INSERT, values).await
            }
            (PutRow::Link(link), Some(writers)) => {
                let link = LinkWrite::new(namespace, new, link, true);
                let values = LinkReplacement::new(link, &writers);
                engine.decide(op, cql::REPLACE, values).await
            }
            (PutRow::Released(generation), None) => {
                let values = ReleasedWrite::new(namespace, new, *generation);
                engine.decide(op, cql::INSERT_RELEASED, values).await
            }
            (PutRow::Released(generation), Some(writers)) => {
                let row = ReleasedWrite::new(namespace, new, *generation);
                let values = ReleasedReplacement::new(row, &writers);
                engine.decide(op, cql::REPLACE_RELEASED, values).await
            }
        }
    }

    async fn edit(
        &self,
        op: &'static str,
        before: &StoredLink,
        after: &Link,
        mark: Mark,
    ) -> PortResult<Decided> {
        let values = LinkEdit::new(&self.namespace, before, after, &mark);
        self.engine.decide(op, cql::EDIT, values).await
    }

    async fn spend(
        &self,
        op: &'static str,
        id: &LinkId,
        seen: Revision,
        spent: u64,
        mark: Mark,
    ) -> PortResult<Decided> {
        let values = (
            spent.saturating_add(1).cast_signed(),
            &mark.0[..],
            &*self.namespace,
            i64::from(id.domain.0),
            id.key.as_str(),
            i64::from(seen.generation),
            i64::from(seen.version),
            spent.cast_signed(),
        );
        self.engine.decide(op, cql::SPEND, values).await
    }

    async fn release(
        &self,
        op: &'static str,
        before: &StoredLink,
        released: &ReleasedCounts,
        mark: Mark,
    ) -> PortResult<Decided> {
        let (id, seen) = (&before.link.id, before.link.revision);
        let values = Release {
            namespace: &self.namespace,
            domain: id.domain.0.into(),
            key: id.key.as_str(),
            released,
            change_mark: &mark.0,
            seen_generation: seen.generation.into(),
            seen_version: seen.version.into(),
        };
        self.engine.decide(op, cql::RELEASE, values).await
    }

    async fn scan(
        &self,
        op: &'static str,
        after: Option<&str>,
        _is_exact: bool,
    ) -> PortResult<ScanPart<ScannedLink>> {
        let scan = self
            .engine
            .scan(op, cql::SCAN, &self.namespace, after, SCANNED_AT_ONCE);
        let part: ScanPart<ScannedRow> = scan.await?;
        let row = |row: ScannedRow| {
            Ok(ScannedLink {
                name: row.name(op)?,
                state: row.state,
                origin: row.origin,
                released: row.released.unwrap_or_default(),
            })
        };
        let rows: PortResult<_> = part.rows.into_iter().map(row).collect();
        Ok(ScanPart {
            rows: rows?,
            next: part.next,
        })
    }

    async fn get_released(
        &self,
        op: &'static str,
        shard: ShardId,
    ) -> PortResult<Option<ReleasedCounts>> {
        let key = shard.number().to_string();
        let values = (&*self.namespace, RELEASED_DOMAIN, &key);
        let found: Option<(Option<ReleasedCounts>,)> =
            self.engine.first(op, cql::GET_COUNTS, values).await?;
        Ok(found.map(|(counts,)| counts.unwrap_or_default()))
    }

    async fn put_released(
        &self,
        op: &'static str,
        shard: ShardId,
        before: Option<&ReleasedCounts>,
        after: &ReleasedCounts,
    ) -> PortResult<Decided> {
        let (namespace, key) = (&*self.namespace, shard.number().to_string());
        match before {
            None => {
                let values = (namespace, RELEASED_DOMAIN, &key, after);
                self.engine.decide(op, cql::INSERT_COUNTS, values).await
            }
            Some(before) => {
                let values = (after, namespace, RELEASED_DOMAIN, &key, before);
                self.engine.decide(op, cql::UPDATE_COUNTS, values).await
            }
        }
    }

    /// Asks for the agreement that a write needs.
    async fn ping(&self, op: &'static str) -> PortResult<()> {
        crate::cursor::ping(&self.engine, &self.namespace, op).await
    }
}
