//! Rows that are seeded ahead of time and claimed one by one.

use std::collections::BTreeMap;

use curt_core::ports::{ClaimReply, InsertRequest};
use curt_core::{ErrorKind, Link, LinkId, PortError, PortResult, Revision};
use tokio_postgres::Row;

use super::once::{self, Names, Recorded};
use super::record::{Columns, id_columns};
use super::sql;
use crate::by_index::BY_INDEX;
use crate::decode::{parse_key, small};
use crate::engine::{Engine, Step, Value, column};
use crate::failure::BACKEND;

pub(super) const OP: &str = "claim links";

pub(super) async fn seed(engine: &Engine, ids: &[LinkId]) -> PortResult<u64> {
    const OP: &str = "seed links";
    let (domains, keys) = id_columns(ids);
    let rows = engine.write(OP, sql::SEED, &[&domains, &keys]).await?;
    let seeded: i64 = rows.first().map_or(Ok(0), |row| column(OP, row, 0))?;
    Ok(seeded.cast_unsigned())
}

pub(super) async fn claim(engine: &Engine, request: &InsertRequest) -> PortResult<ClaimReply> {
    let rows = write(engine, request).await?;
    let (claimed, recorded) = read(&request.links, &rows)?;
    let Some(once) = request.once.as_ref().filter(|_| !recorded) else {
        return Ok(ClaimReply::Claimed(claimed));
    };
    let found = once::find(engine, OP, &[(once, request.now)]).await?;
    match found.into_iter().next().flatten() {
        Some(Recorded::Same(replay)) => Ok(ClaimReply::Replayed(replay)),
        Some(Recorded::Other) => Ok(ClaimReply::Mismatch),
        // The seeds do not suffice.
        None => Ok(ClaimReply::Claimed(Vec::new())),
    }
}

async fn write(engine: &Engine, request: &InsertRequest) -> PortResult<Vec<Row>> {
    let columns = Columns::of(&request.links);
    let mut wanted: BTreeMap<i64, i64> = BTreeMap::new();
    let mut ranks: Vec<i64> = Vec::with_capacity(request.links.len());
    for link in &request.links {
        let rank = wanted.entry(link.id.domain.0.into()).or_default();
        *rank += 1;
        ranks.push(*rank);
    }
    let (domains, counts): (Vec<i64>, Vec<i64>) = wanted.into_iter().unzip();
    let once = request.once.as_ref();
    let owner = once.map(|once| once.owner.0.cast_signed());
    let name = once.map(|once| &*once.key);
    let fingerprint = once.map(|once| &once.fingerprint[..]);
    let rest: [Value<'_>; 7] = [
        &ranks,
        &domains,
        &counts,
        &owner,
        &name,
        &fingerprint,
        &request.now.0,
    ];
    let values = [columns.values(), rest.to_vec()].concat();
    let names = Names::of(once.map(|once| (once, request.now)));
    let names_values = names.values();
    let forget = Step {
        sql: sql::FORGET_RECORDS,
        values: &names_values,
    };
    let claim = Step {
        sql: sql::CLAIM,
        values: &values,
    };
    let mut answers = engine.transact(OP, &[BY_INDEX, forget, claim]).await?;
    Ok(answers.pop().unwrap_or_default())
}

/// The links as they were stored, in order, and whether the request was recorded.
fn read(links: &[Link], rows: &[Row]) -> PortResult<(Vec<Link>, bool)> {
    let mut claimed = BTreeMap::new();
    let mut recorded = false;
    for row in rows {
        let (place, number): (i64, i64) = (column(OP, row, 0)?, column(OP, row, 2)?);
        let Some(key) = column::<Option<&str>>(OP, row, 1)? else {
            recorded = number > 0;
            continue;
        };
        let link = usize::try_from(place - 1).ok().and_then(|at| links.get(at));
        let link = link.ok_or_else(|| {
            PortError::new(ErrorKind::Bug, BACKEND, OP, "an answer without a question")
        })?;
        let generation = small(OP, number)?;
        let link = Link {
            id: LinkId::new(link.id.domain, parse_key(OP, key)?),
            revision: Revision {
                generation,
                version: 1,
            },
            ..link.clone()
        };
        claimed.insert(place, link);
    }
    Ok((claimed.into_values().collect(), recorded))
}
