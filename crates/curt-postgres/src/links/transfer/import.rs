//! Items of another database, each put in place of what is older.
//!
//! What is there is read first, and decided about by the rules that all engines share; then the changes are made in one
//! transaction, each if the row is still what it was. Where one is not, all is decided again.

use std::collections::HashMap;

use curt_core::ports::{ImportReport, LinkItem, ShardItem, StoredRow, Transferred};
use curt_core::{ErrorKind, LinkId, OwnerId, PortError, PortResult, Revision, ShardMap};

use super::export::released;
use super::sql;
use crate::engine::{Engine, Step, Value};
use crate::failure::BACKEND;
use crate::links::check_link;
use crate::links::copies::{RecordColumns, items_of, requests_of};
use crate::links::record::{Columns, epochs, id_columns, shard_of};

const OP: &str = "import links";
/// How often it is decided again.
const ATTEMPTS: usize = 5;

pub(super) async fn import(
    engine: &Engine,
    map: &ShardMap,
    items: &[LinkItem],
) -> PortResult<ImportReport> {
    let epochs = epochs(map);
    require_open(engine, items, &epochs).await?;
    for _ in 0..ATTEMPTS {
        let there = read_all(engine, items).await?;
        let mut report = ImportReport::default();
        let mut changes = Changes::default();
        for item in items {
            let there = there.get(&item.name());
            let decided = match there {
                Some(there) => item.replaces(there),
                None => item.replaces(&nothing(item)),
            };
            if report.count(item, decided) {
                changes.add(item, there)?;
            }
        }
        if report.written == 0 || changes.make(engine, &epochs).await? {
            return Ok(report);
        }
    }
    let why = "what is stored changes all the time: is a server running on it?";
    Err(PortError::new(ErrorKind::Unavailable, BACKEND, OP, why))
}

/// Refuses shards that moved to another node.
async fn require_open(engine: &Engine, items: &[LinkItem], epochs: &[i64]) -> PortResult<()> {
    let mut shards: Vec<i16> = items.iter().map(shard_number).collect();
    shards.sort_unstable();
    shards.dedup();
    let sealed = engine.read(OP, sql::SEALED, &[&shards, &epochs]).await?;
    match sealed.is_empty() {
        true => Ok(()),
        false => Err(PortError::stale_epoch(BACKEND, OP)),
    }
}

fn shard_number(item: &LinkItem) -> i16 {
    item.shard.number().cast_signed()
}

/// What is stored under the names of the items.
async fn read_all(engine: &Engine, items: &[LinkItem]) -> PortResult<HashMap<Box<str>, LinkItem>> {
    let (mut ids, mut names): (Vec<LinkId>, Vec<(OwnerId, Box<str>)>) = Default::default();
    let mut asks_released = false;
    for item in items {
        match &item.item {
            ShardItem::Link { id, .. } => ids.push(id.clone()),
            ShardItem::Request { owner, key, .. } => names.push((*owner, key.clone())),
            ShardItem::Released { .. } => asks_released = true,
        }
    }
    let mut found = items_of(engine, OP, &ids).await?;
    found.extend(requests_of(engine, OP, &names).await?);
    let mut found: Vec<LinkItem> = found.into_iter().filter_map(LinkItem::new).collect();
    if asks_released {
        found.extend(released(engine, OP).await?);
    }
    Ok(found.into_iter().map(|item| (item.name(), item)).collect())
}

/// What an item is where there is none.
fn nothing(item: &LinkItem) -> LinkItem {
    let shard = item.shard;
    let item = match item.item.clone() {
        ShardItem::Link { id, .. } => ShardItem::Link {
            id,
            stored: None,
            former_generation: None,
        },
        ShardItem::Request { owner, key, .. } => ShardItem::Request {
            owner,
            key,
            record: None,
        },
        ShardItem::Released { origin, .. } => ShardItem::Released { origin, count: 0 },
    };
    LinkItem { shard, item }
}

/// What is to be done, by kind.
#[derive(Default)]
struct Changes<'a> {
    taken: Vec<(&'a LinkId, Revision)>,
    put: Vec<&'a StoredRow>,
    former: Vec<(&'a LinkId, u32)>,
    requests: Vec<(i64, &'a str, i16)>,
    records: Vec<(i64, &'a str, &'a curt_core::ports::IdempotencyRecord)>,
    record_shards: Vec<i16>,
    released: Vec<(i16, i16, i64)>,
}

impl<'a> Changes<'a> {
    fn add(&mut self, item: &'a LinkItem, there: Option<&LinkItem>) -> PortResult<()> {
        let shard = shard_number(item);
        match &item.item {
            ShardItem::Link {
                id,
                stored,
                former_generation,
            } => {
                if let Some(ShardItem::Link {
                    stored: Some(before),
                    ..
                }) = there.map(|there| &there.item)
                {
                    self.taken.push((id, before.link.revision));
                }
                if let Some(stored) = stored {
                    check_link(OP, &stored.link)?;
                    self.put.push(stored);
                }
                self.former
                    .extend(former_generation.map(|former| (id, former)));
            }
            ShardItem::Request { owner, key, record } => {
                let owner = owner.0.cast_signed();
                self.requests.push((owner, key, shard));
                if let Some(record) = record {
                    self.records.push((owner, key, record));
                    self.record_shards.push(shard);
                }
            }
            ShardItem::Released { origin, count } => {
                self.released
                    .push((shard, *origin as i16, count.cast_signed()));
            }
        }
        Ok(())
    }

    /// `false`: something had changed, and is to be decided again.
    async fn make(&self, engine: &Engine, epochs: &[i64]) -> PortResult<bool> {
        let (domains, keys) = id_columns(self.taken.iter().map(|(id, _)| *id));
        let (generations, versions) = revisions(self.taken.iter().map(|(_, revision)| *revision));
        let take: [Value<'_>; 5] = [&domains, &keys, &generations, &versions, &epochs];
        let columns = Columns::of(self.put.iter().map(|row| (&row.link, row.token)));
        let permanent: Vec<bool> = self.put.iter().map(|row| row.was_permanent).collect();
        let shards: Vec<i16> = self.put.iter().map(|row| shard_of(&row.link.id)).collect();
        let mut put = columns.values();
        put.extend([&permanent as Value<'_>, &shards, &epochs]);
        let (put_domains, put_keys) = id_columns(self.put.iter().map(|row| &row.link.id));
        let (put_generations, put_versions) =
            revisions(self.put.iter().map(|row| row.link.revision));
        let spent = self.put.iter().map(|row| row.clicks_spent.cast_signed());
        let spent: Vec<i64> = spent.collect();
        let spend: [Value<'_>; 5] = [
            &put_domains,
            &put_keys,
            &put_generations,
            &put_versions,
            &spent,
        ];
        let steps = [
            (sql::TAKE, &take[..]),
            (sql::PUT, &put),
            (sql::PUT_SPENT, &spend),
        ];
        let mut steps = steps.map(|(sql, values)| Step { sql, values }).to_vec();
        let beside = Beside::of(self, epochs);
        let beside = beside.values();
        steps.extend(beside.iter().map(|(sql, values)| Step { sql, values }));
        let answers = engine.transact(OP, &steps).await?;
        let added = answers.get(1).map_or(0, Vec::len);
        Ok(added == self.put.len())
    }
}

/// What is kept beside links, by column.
struct Beside<'a> {
    former: (Vec<i64>, Vec<&'a str>, Vec<i16>, Vec<i64>),
    requests: (Vec<i64>, Vec<&'a str>, Vec<i16>),
    records: RecordColumns<'a>,
    record_shards: &'a Vec<i16>,
    released: (Vec<i16>, Vec<i16>, Vec<i64>),
    epochs: &'a [i64],
}

impl<'a> Beside<'a> {
    fn of(changes: &'a Changes<'a>, epochs: &'a [i64]) -> Self {
        let (domains, keys) = id_columns(changes.former.iter().map(|(id, _)| *id));
        let shards = changes.former.iter().map(|(id, _)| shard_of(id));
        let generations = changes.former.iter().map(|(_, former)| (*former).into());
        Self {
            former: (domains, keys, shards.collect(), generations.collect()),
            requests: changes.requests.iter().copied().collect(),
            records: RecordColumns::of(&changes.records),
            record_shards: &changes.record_shards,
            released: changes.released.iter().copied().collect(),
            epochs,
        }
    }

    fn values(&self) -> [(&'static str, Vec<Value<'_>>); 4] {
        let (domains, keys, shards, generations) = &self.former;
        let (owners, names, request_shards) = &self.requests;
        let mut records = self.records.values();
        records.extend([self.record_shards as Value<'_>, &self.epochs]);
        let (released_shards, origins, counts) = &self.released;
        [
            (
                sql::PUT_FORMER,
                vec![domains, keys, shards, generations, &self.epochs],
            ),
            (
                sql::TAKE_REQUESTS,
                vec![owners, names, request_shards, &self.epochs],
            ),
            (sql::PUT_REQUESTS, records),
            (
                sql::PUT_RELEASED,
                vec![released_shards, origins, counts, &self.epochs],
            ),
        ]
    }
}

fn revisions(revisions: impl Iterator<Item = Revision>) -> (Vec<i64>, Vec<i64>) {
    revisions
        .map(|revision| (i64::from(revision.generation), i64::from(revision.version)))
        .unzip()
}
