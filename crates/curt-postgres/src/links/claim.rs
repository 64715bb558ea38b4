//! Rows that are seeded ahead of time and claimed one by one.

use std::collections::BTreeMap;

use curt_core::{Link, LinkId, PortResult, Revision, ShardMap};

use super::record::{Columns, epoch_of, epochs, id_columns, shard_of};
use super::sql;
use crate::by_index::BY_INDEX;
use crate::decode::{corrupt, parse_key, small};
use crate::engine::{Engine, Step, Value, column};

pub(super) const OP: &str = "claim links";

pub(super) async fn seed(engine: &Engine, map: &ShardMap, ids: &[LinkId]) -> PortResult<u64> {
    const OP: &str = "seed links";
    let (domains, keys) = id_columns(ids);
    let shards: Vec<i16> = ids.iter().map(shard_of).collect();
    let epochs: Vec<i64> = ids.iter().map(|id| epoch_of(map, id)).collect();
    let values: [Value<'_>; 4] = [&domains, &keys, &shards, &epochs];
    let rows = engine.write(OP, sql::SEED, &values).await?;
    let seeded: i64 = rows.first().map_or(Ok(0), |row| column(OP, row, 0))?;
    Ok(seeded.cast_unsigned())
}

pub(super) async fn claim(
    engine: &Engine,
    map: &ShardMap,
    links: &[Link],
) -> PortResult<Vec<Link>> {
    let columns = Columns::of(links.iter().map(|link| (link, None)));
    let mut wanted: BTreeMap<i64, i64> = BTreeMap::new();
    let mut ranks: Vec<i64> = Vec::with_capacity(links.len());
    for link in links {
        let rank = wanted.entry(link.id.domain.0.into()).or_default();
        *rank += 1;
        ranks.push(*rank);
    }
    let (domains, counts): (Vec<i64>, Vec<i64>) = wanted.into_iter().unzip();
    let epochs = epochs(map);
    let rest: [Value<'_>; 4] = [&ranks, &domains, &counts, &epochs];
    let values = [columns.values(), rest.to_vec()].concat();
    let claim = Step {
        sql: sql::CLAIM,
        values: &values,
    };
    let mut answers = engine.transact(OP, &[BY_INDEX, claim]).await?;
    let mut claimed = BTreeMap::new();
    for row in answers.pop().unwrap_or_default() {
        let place: i64 = column(OP, &row, 0)?;
        let link = usize::try_from(place - 1).ok().and_then(|at| links.get(at));
        let link = link.ok_or_else(|| corrupt(OP, "an answer without a question"))?;
        let link = Link {
            id: LinkId::new(link.id.domain, parse_key(OP, column(OP, &row, 1)?)?),
            revision: Revision {
                generation: small(OP, column(OP, &row, 2)?)?,
                version: 1,
            },
            ..link.clone()
        };
        claimed.insert(place, link);
    }
    Ok(claimed.into_values().collect())
}
