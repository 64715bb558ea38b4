//! Links that come to be without an `Idempotency-Key`: each for itself, many requests in one statement.

use std::collections::{HashMap, HashSet};

use curt_core::ports::{InsertReply, Inserted};
use curt_core::{DomainId, Link, LinkId, PortError, PortResult};
use tokio_postgres::Row;

use super::queue::Call;
use super::record::Columns;
use super::{OP_INSERT, sql};
use crate::decode::{link_id, parse_key, small};
use crate::engine::{Engine, column};
use crate::failure::Shared;

/// Inserts the links of all calls and answers each.
pub(super) async fn run(engine: &Engine, group: Vec<Call>) {
    let links: Vec<&Link> = group.iter().flat_map(|call| &call.request.links).collect();
    let mut outcomes = match insert(engine, &links).await {
        Ok(outcomes) => outcomes.into_iter(),
        Err(error) => return answer_all(group, error),
    };
    for call in group {
        let own = outcomes.by_ref().take(call.request.links.len()).collect();
        call.answer(Ok(InsertReply::Stored(own)));
    }
}

/// Tells every caller of a failed group.
pub(super) fn answer_all(group: Vec<Call>, error: PortError) {
    let failure = Shared::from(error);
    for call in group {
        call.answer(Err(failure.for_caller()));
    }
}

async fn insert(engine: &Engine, links: &[&Link]) -> PortResult<Vec<Inserted>> {
    if links.is_empty() {
        return Ok(Vec::new());
    }
    let is_first = first_of_each_id(links.iter().copied());
    let firsts = links.iter().zip(&is_first).filter(|(_, first)| **first);
    let columns = Columns::of(firsts.map(|(link, _)| *link));
    let values = columns.values();
    let rows = engine.write(OP_INSERT, sql::INSERT, &values).await?;
    let created = generations_in(OP_INSERT, &rows, 0)?;
    let outcome = |(link, first): (&&Link, bool)| match created.get(&link.id) {
        Some(generation) if first => created_with(link, *generation),
        _ => Inserted::Conflict,
    };
    Ok(links.iter().zip(is_first).map(outcome).collect())
}

/// For each link, whether no earlier one has its id.
pub(super) fn first_of_each_id<'a>(links: impl IntoIterator<Item = &'a Link>) -> Vec<bool> {
    let mut seen = HashSet::new();
    links
        .into_iter()
        .map(|link| seen.insert(link.id.as_ref()))
        .collect()
}

/// The outcome of a link that was stored with this generation.
pub(super) fn created_with(link: &Link, generation: u32) -> Inserted {
    match generation == link.revision.generation {
        true => Inserted::Created,
        false => Inserted::CreatedAnew(generation),
    }
}

/// The ids and generations in three columns from `index` on.
pub(super) fn generations_in<'a>(
    op: &'static str,
    rows: impl IntoIterator<Item = &'a Row>,
    index: usize,
) -> PortResult<HashMap<LinkId, u32>> {
    let pair = |row: &'a Row| {
        let domain = small(op, column(op, row, index)?)?;
        let key = parse_key(op, column(op, row, index + 1)?)?;
        let generation = small(op, column(op, row, index + 2)?)?;
        Ok((LinkId::new(DomainId(domain), key), generation))
    };
    rows.into_iter().map(pair).collect()
}

/// The ids in the first two columns of an answer.
pub(super) fn ids_in(op: &'static str, rows: &[Row]) -> PortResult<HashSet<LinkId>> {
    rows.iter().map(|row| link_id(op, row)).collect()
}
