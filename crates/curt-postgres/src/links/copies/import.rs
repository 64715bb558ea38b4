//! Items of another node, put into a copy.

use curt_core::ports::{IdempotencyRecord, ShardItem, StoredRow};
use curt_core::{Epoch, Link, LinkId, PortResult, ShardId};

use super::{shard_number, stale, transact_guarded};
use crate::engine::{Engine, Value};
use crate::links::record::{Columns, id_columns};
use crate::links::sql;

const OP_IMPORT: &str = "import a shard";

pub(in crate::links) async fn begin_import(
    engine: &Engine,
    shard: ShardId,
    fence: u64,
    epoch: Epoch,
) -> PortResult<()> {
    let (number, fence, epoch) = (
        shard_number(shard),
        fence.cast_signed(),
        epoch.0.cast_signed(),
    );
    let values: [Value<'_>; 3] = [&number, &fence, &epoch];
    let begun = engine.write(OP_IMPORT, sql::BEGIN_IMPORT, &values).await?;
    match begun.is_empty() {
        true => Err(stale(OP_IMPORT)),
        false => Ok(()),
    }
}

/// The items of an import by column.
#[derive(Default)]
struct Items<'a> {
    ids: Vec<&'a LinkId>,
    rows: Vec<&'a StoredRow>,
    former: Vec<(&'a LinkId, u32)>,
    requests: Vec<(i64, &'a str)>,
    records: Vec<(i64, &'a str, &'a IdempotencyRecord)>,
    released: Vec<(i16, i64)>,
}

impl<'a> Items<'a> {
    fn of(items: &'a [ShardItem]) -> Self {
        let mut sorted = Self::default();
        for item in items {
            match item {
                ShardItem::Link {
                    id,
                    stored,
                    former_generation,
                } => {
                    sorted.ids.push(id);
                    sorted.rows.extend(stored.as_deref());
                    sorted
                        .former
                        .extend(former_generation.map(|former| (id, former)));
                }
                ShardItem::Request { owner, key, record } => {
                    let owner = owner.0.cast_signed();
                    sorted.requests.push((owner, key));
                    sorted
                        .records
                        .extend(record.as_deref().map(|record| (owner, &**key, record)));
                }
                ShardItem::Released { origin, count } => {
                    sorted.released.push((*origin as i16, count.cast_signed()));
                }
            }
        }
        sorted
    }
}

pub(in crate::links) async fn import(
    engine: &Engine,
    shard: ShardId,
    fence: u64,
    items: &[ShardItem],
) -> PortResult<()> {
    let items = Items::of(items);
    let (number, fence) = (shard_number(shard), fence.cast_signed());
    let guard: [Value<'_>; 2] = [&number, &fence];
    let (domains, keys) = id_columns(items.ids.iter().copied());
    let remove: [Value<'_>; 4] = [&number, &fence, &domains, &keys];
    let links: Vec<&Link> = items.rows.iter().map(|row| &row.link).collect();
    let columns = Columns::of(items.rows.iter().map(|row| (&row.link, row.token)));
    let permanent: Vec<bool> = items.rows.iter().map(|row| row.was_permanent).collect();
    let mut put = columns.values();
    put.extend([&number as Value<'_>, &fence, &permanent]);
    let (spent_domains, spent_keys) = id_columns(links.iter().map(|link| &link.id));
    let spent: Vec<i64> = items
        .rows
        .iter()
        .map(|row| row.clicks_spent.cast_signed())
        .collect();
    let spend: [Value<'_>; 5] = [&number, &fence, &spent_domains, &spent_keys, &spent];
    let (former_domains, former_keys) = id_columns(items.former.iter().map(|(id, _)| *id));
    let generations: Vec<i64> = items
        .former
        .iter()
        .map(|(_, former)| (*former).into())
        .collect();
    let former: [Value<'_>; 5] = [&number, &fence, &former_domains, &former_keys, &generations];
    let (owners, names): (Vec<i64>, Vec<&str>) = items.requests.iter().copied().unzip();
    let forget: [Value<'_>; 4] = [&number, &fence, &owners, &names];
    let records = RecordColumns::of(&items.records);
    let mut record = records.values();
    record.extend([&number as Value<'_>, &fence]);
    let (origins, counts): (Vec<i16>, Vec<i64>) = items.released.iter().copied().unzip();
    let released: [Value<'_>; 4] = [&number, &fence, &origins, &counts];
    let steps: [(&str, &[Value<'_>]); 10] = [
        (sql::GUARD_IMPORT, &guard),
        (sql::IMPORT_UNTAG, &remove),
        (sql::IMPORT_REMOVE, &remove),
        (sql::IMPORT_LINKS, &put),
        (sql::IMPORT_SPENT, &spend),
        (sql::IMPORT_FORGET_FORMER, &remove),
        (sql::IMPORT_FORMER, &former),
        (sql::IMPORT_FORGET_REQUESTS, &forget),
        (sql::IMPORT_REQUESTS, &record),
        (sql::IMPORT_RELEASED, &released),
    ];
    transact_guarded(engine, OP_IMPORT, &steps).await
}

/// Records of requests by column.
#[derive(Default)]
pub(in crate::links) struct RecordColumns<'a> {
    owner: Vec<i64>,
    name: Vec<&'a str>,
    fingerprint: Vec<&'a [u8]>,
    token: Vec<&'a [u8]>,
    version: Vec<i64>,
    created_at: Vec<i64>,
    plan: Vec<String>,
    outcome: Vec<Option<String>>,
}

impl<'a> RecordColumns<'a> {
    pub(in crate::links) fn of(records: &[(i64, &'a str, &'a IdempotencyRecord)]) -> Self {
        let mut columns = Self::default();
        for (owner, name, record) in records {
            columns.owner.push(*owner);
            columns.name.push(name);
            columns.fingerprint.push(&record.fingerprint);
            columns.token.push(&record.plan.token.0);
            columns.version.push(record.plan.version.into());
            columns.created_at.push(record.plan.at.0);
            columns.plan.push(record.plan.keys_to_text());
            let outcome = record.outcome.as_ref().map(|outcome| outcome.ids_to_text());
            columns.outcome.push(outcome);
        }
        columns
    }

    pub(in crate::links) fn values(&self) -> Vec<Value<'_>> {
        vec![
            &self.owner,
            &self.name,
            &self.fingerprint,
            &self.token,
            &self.version,
            &self.created_at,
            &self.plan,
            &self.outcome,
        ]
    }
}
