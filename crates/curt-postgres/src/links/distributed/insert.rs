use std::collections::HashSet;

use curt_core::ports::{Inserted, LinkChange, RequestToken};
use curt_core::{ErrorKind, Link, PortResult, Revision};
use futures_util::StreamExt as _;
use futures_util::stream;

use super::sql;
use crate::decode::small;
use crate::engine::{Engine, Step, Value, column};
use crate::links::record::{Columns, change_of};

pub(super) const OP: &str = "insert links";

/// Links of one call that are inserted at the same time.
const AT_ONCE: usize = 4;

/// Inserts each link in a transaction of its own: they are on different servers.
pub(super) async fn insert(
    engine: &Engine,
    links: &[Link],
    token: Option<RequestToken>,
) -> PortResult<Vec<Inserted>> {
    let mut ids = HashSet::new();
    let firsts: Vec<bool> = links.iter().map(|link| ids.insert(&link.id)).collect();
    let insert = |(link, is_first): (&Link, &bool)| {
        let (link, is_first) = (link.clone(), *is_first);
        async move {
            match is_first {
                true => insert_one(engine, &link, token).await,
                false => Ok(None),
            }
        }
    };
    let inserts = stream::iter(links.iter().zip(&firsts).map(insert));
    let answers: Vec<PortResult<Option<Inserted>>> = inserts.buffered(AT_ONCE).collect().await;
    let has_effect = answers.iter().any(|answer| matches!(answer, Ok(Some(_))));
    let mut outcomes = Vec::with_capacity(links.len());
    for (answer, link) in answers.into_iter().zip(links) {
        let outcome = match answer {
            Ok(Some(outcome)) => outcome,
            // The second of its id in this call: the first one decides.
            Ok(None) => find_created_before(engine, link, token).await?,
            Err(mut failure) => {
                // With another link inserted, nobody may take it that nothing happened.
                if has_effect && failure.kind.is_without_effect() {
                    failure.kind = ErrorKind::Timeout;
                }
                return Err(failure);
            }
        };
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

async fn insert_one(
    engine: &Engine,
    link: &Link,
    token: Option<RequestToken>,
) -> PortResult<Option<Inserted>> {
    let tags: Option<Vec<&str>> =
        (!link.tags.is_empty()).then(|| link.tags.iter().map(|tag| &**tag).collect());
    let tags_lower = tags_lower(link);
    let mark: i64 = rand::random();
    let columns = Columns::of(std::iter::once((link, token)));
    let mut values = columns.first_values(&tags);
    values.extend([&tags_lower as Value<'_>, &mark]);
    let id: [Value<'_>; 3] = [values[0], values[1], &mark];
    let steps = [(sql::INSERT, &values[..]), (sql::FOLLOW_RELEASED, &id)];
    let steps = steps.map(|(sql, values)| Step { sql, values });
    let answers = engine.transact(OP, &steps).await?;
    let [inserted, raised] = &answers[..] else {
        return Ok(None);
    };
    let Some(row) = inserted.first() else {
        return find_created_before(engine, link, token).await.map(Some);
    };
    let mut change = change_of(OP, row)?;
    if let Some(row) = raised.first() {
        change.revision.generation = small(OP, column(OP, row, 0)?)?;
    }
    Ok(Some(Inserted::Created(change)))
}

/// Whether the link that has the id was created by this request.
async fn find_created_before(
    engine: &Engine,
    link: &Link,
    token: Option<RequestToken>,
) -> PortResult<Inserted> {
    let Some(token) = token else {
        return Ok(Inserted::Conflict);
    };
    let (domain, key) = (i64::from(link.id.domain.0), link.id.key.as_str());
    let values: [Value<'_>; 2] = [&domain, &key];
    let rows = engine.read_latest(OP, sql::FIND_TOKEN, &values).await?;
    let Some(row) = rows.first() else {
        return Ok(Inserted::Conflict);
    };
    let LinkChange { id, revision } = change_of(OP, row)?;
    let revision: Revision = revision;
    match column::<Option<&[u8]>>(OP, row, 4)? == Some(&token.0[..]) {
        true => Ok(Inserted::CreatedBefore(LinkChange { id, revision })),
        false => Ok(Inserted::Conflict),
    }
}

/// `None`: it has no tags.
pub(super) fn tags_lower(link: &Link) -> Option<Vec<String>> {
    let lower = || link.tags.iter().map(|tag| tag.to_ascii_lowercase());
    (!link.tags.is_empty()).then(|| lower().collect())
}
