//! New links: each for itself, many requests in one statement.

use std::collections::{HashMap, HashSet};

use curt_core::ports::{Inserted, LinkChange, RequestToken};
use curt_core::{Link, LinkId, PortError, PortResult, Revision};
use tokio_postgres::Row;

use super::queue::Call;
use super::record::{Columns, change_of};
use super::{OP_INSERT, sql};
use crate::engine::{Engine, Value, column};
use crate::failure::Shared;

type NewLink<'a> = (&'a Link, Option<RequestToken>);

/// Inserts the links of all calls and answers each.
pub(super) async fn run(engine: &Engine, group: Vec<Call>) {
    let links = group.iter().flat_map(|call| {
        let links = call.links.iter();
        links.map(|link| (link, call.token))
    });
    let links: Vec<NewLink<'_>> = links.collect();
    let mut outcomes = match insert(engine, &links).await {
        Ok(outcomes) => outcomes.into_iter(),
        Err(error) => return answer_all(group, error),
    };
    for call in group {
        let own = outcomes.by_ref().take(call.links.len()).collect();
        call.answer(Ok(own));
    }
}

/// Tells every caller of a failed group.
pub(super) fn answer_all(group: Vec<Call>, error: PortError) {
    let failure = Shared::from(error);
    for call in group {
        call.answer(Err(failure.for_caller()));
    }
}

async fn insert(engine: &Engine, links: &[NewLink<'_>]) -> PortResult<Vec<Inserted>> {
    if links.is_empty() {
        return Ok(Vec::new());
    }
    let mut ids = HashSet::new();
    let is_first: Vec<bool> = links
        .iter()
        .map(|(link, _)| ids.insert(link.id.as_ref()))
        .collect();
    let firsts = links.iter().zip(&is_first).filter(|(_, first)| **first);
    let columns = Columns::of(firsts.map(|((link, token), _)| (*link, *token)));
    let rows = engine
        .write(OP_INSERT, sql::INSERT, &columns.values())
        .await?;
    let created = revisions_in(&rows)?;
    let is_created = |link: &Link, first: &bool| *first && created.contains_key(&link.id);
    let others = links.iter().zip(&is_first);
    let others = others.filter(|((link, _), first)| !is_created(link, first));
    let others: Vec<NewLink<'_>> = others.map(|(link, _)| *link).collect();
    let before = find_created_before(engine, &others).await?;
    let outcome = |((link, token), first): (&NewLink<'_>, &bool)| {
        let change = |revision: &Revision| LinkChange {
            id: link.id.clone(),
            revision: *revision,
        };
        match created.get(&link.id) {
            Some(revision) if *first => Inserted::Created(change(revision)),
            _ => match before.get(&(link.id.clone(), *token)) {
                Some(revision) => Inserted::CreatedBefore(change(revision)),
                None => Inserted::Conflict,
            },
        }
    };
    Ok(links.iter().zip(&is_first).map(outcome).collect())
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
            .filter_map(|(link, token)| Some((link, (*token)?)))
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
