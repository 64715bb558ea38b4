//! New links: each for itself, many requests in one statement.

use std::collections::{HashMap, HashSet};

use curt_core::ports::{Inserted, LinkChange, RequestToken};
use curt_core::{Link, LinkId, PortError, PortResult, Revision};
use tokio_postgres::Row;

use super::queue::Call;
use super::record::{Columns, change_of, epoch_of, shard_of};
use super::{OP_INSERT, sql};
use crate::decode::corrupt;
use crate::engine::{Engine, Value, column};
use crate::failure::{BACKEND, Shared};

#[derive(Clone, Copy)]
struct NewLink<'a> {
    link: &'a Link,
    call: &'a Call,
    /// The call's, in its group.
    number: usize,
}

/// What became of a statement.
enum Reply {
    /// Per link, in order.
    Done(Vec<Inserted>),
    /// Nothing was inserted, because the calls of these numbers in the group came to a former owner.
    Refused(HashSet<usize>),
}

/// Inserts the links of all calls and answers each.
pub(super) async fn run(engine: &Engine, mut group: Vec<Call>) {
    while !group.is_empty() {
        let links = group.iter().enumerate().flat_map(|(number, call)| {
            let links = call.links.iter();
            links.map(move |link| NewLink { link, call, number })
        });
        let links: Vec<NewLink<'_>> = links.collect();
        match insert(engine, &links).await {
            Ok(Reply::Done(outcomes)) => {
                let mut outcomes = outcomes.into_iter();
                for call in group.drain(..) {
                    let own = outcomes.by_ref().take(call.links.len()).collect();
                    call.answer(Ok(own));
                }
            }
            // A call that is refused does not fail the others: they run again without it.
            Ok(Reply::Refused(numbers)) => {
                for (number, call) in std::mem::take(&mut group).into_iter().enumerate() {
                    match numbers.contains(&number) {
                        true => call.answer(Err(PortError::stale_epoch(BACKEND, OP_INSERT))),
                        false => group.push(call),
                    }
                }
            }
            Err(error) => return answer_all(group, error),
        }
    }
}

/// Tells every caller of a failed group.
pub(super) fn answer_all(group: Vec<Call>, error: PortError) {
    let failure = Shared::from(error);
    for call in group {
        call.answer(Err(failure.for_caller()));
    }
}

async fn insert(engine: &Engine, links: &[NewLink<'_>]) -> PortResult<Reply> {
    if links.is_empty() {
        return Ok(Reply::Done(Vec::new()));
    }
    let mut ids = HashSet::new();
    let is_first: Vec<bool> = links
        .iter()
        .map(|new| ids.insert(new.link.id.as_ref()))
        .collect();
    let firsts = links.iter().zip(&is_first).filter(|(_, first)| **first);
    let firsts: Vec<&NewLink<'_>> = firsts.map(|(new, _)| new).collect();
    let rows = write(engine, &firsts).await?;
    let refused = refused_in(&rows, &firsts)?;
    if !refused.is_empty() {
        return Ok(Reply::Refused(refused));
    }
    let created = revisions_in(&rows)?;
    let is_created = |link: &Link, first: &bool| *first && created.contains_key(&link.id);
    let others = links.iter().zip(&is_first);
    let others = others.filter(|(new, first)| !is_created(new.link, first));
    let others: Vec<NewLink<'_>> = others.map(|(new, _)| *new).collect();
    let before = find_created_before(engine, &others).await?;
    let outcome = |(NewLink { link, call, .. }, first): (&NewLink<'_>, &bool)| {
        let change = |revision: &Revision| LinkChange {
            id: link.id.clone(),
            revision: *revision,
        };
        match created.get(&link.id) {
            Some(revision) if *first => Inserted::Created(change(revision)),
            _ => match before.get(&(link.id.clone(), call.token)) {
                Some(revision) => Inserted::CreatedBefore(change(revision)),
                None => Inserted::Conflict,
            },
        }
    };
    let outcomes = links.iter().zip(&is_first).map(outcome);
    Ok(Reply::Done(outcomes.collect()))
}

async fn write(engine: &Engine, links: &[&NewLink<'_>]) -> PortResult<Vec<Row>> {
    let columns = Columns::of(links.iter().map(|new| (new.link, new.call.token)));
    let shards: Vec<i16> = links.iter().map(|new| shard_of(&new.link.id)).collect();
    let epochs = links.iter();
    let epochs = epochs.map(|new| epoch_of(&new.call.map, &new.link.id));
    let epochs: Vec<i64> = epochs.collect();
    let mut values = columns.values();
    values.extend([&shards as Value<'_>, &epochs]);
    engine.write(OP_INSERT, sql::INSERT, &values).await
}

/// The calls that came to a former owner.
fn refused_in(rows: &[Row], links: &[&NewLink<'_>]) -> PortResult<HashSet<usize>> {
    let mut refused = HashSet::new();
    for row in rows {
        if let Some(place) = column::<Option<i64>>(OP_INSERT, row, 4)? {
            let link = usize::try_from(place - 1).ok().and_then(|at| links.get(at));
            let link = link.ok_or_else(|| corrupt(OP_INSERT, "an answer without a question"))?;
            refused.insert(link.number);
        }
    }
    Ok(refused)
}

/// Which of the links that met a row were created by their own requests. Asked after the insert, which has waited for the
/// rows of others to be committed: its own snapshot may be older than them.
async fn find_created_before(
    engine: &Engine,
    links: &[NewLink<'_>],
) -> PortResult<HashMap<(LinkId, Option<RequestToken>), Revision>> {
    let mut found = HashMap::new();
    let with_token = || {
        links
            .iter()
            .filter_map(|new| Some((new.link, new.call.token?)))
    };
    let domains: Vec<i64> = with_token()
        .map(|(link, _)| link.id.domain.0.into())
        .collect();
    if domains.is_empty() {
        return Ok(found);
    }
    let keys: Vec<&str> = with_token().map(|(link, _)| link.id.key.as_str()).collect();
    let tokens: Vec<Vec<u8>> = with_token().map(|(_, token)| token.0.to_vec()).collect();
    let values: [Value<'_>; 3] = [&domains, &keys, &tokens];
    let rows = engine
        .read_latest(OP_INSERT, sql::CREATED_BEFORE, &values)
        .await?;
    for row in &rows {
        let LinkChange { id, revision } = change_of(OP_INSERT, row)?;
        let token = column::<&[u8]>(OP_INSERT, row, 4)?.try_into();
        found.insert((id, token.ok().map(RequestToken)), revision);
    }
    Ok(found)
}

fn revisions_in(rows: &[Row]) -> PortResult<HashMap<LinkId, Revision>> {
    let changes = rows.iter().map(|row| change_of(OP_INSERT, row));
    changes
        .map(|change| change.map(|change| (change.id, change.revision)))
        .collect()
}
