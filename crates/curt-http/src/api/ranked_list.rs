//! Lists of links by clicks. Links and clicks are in different stores, so the links are read first, then counted, and
//! ranked here: that is why there may be only so many.

use std::cmp::Reverse;
use std::sync::Arc;

use curt_clicks::report::Reports;
use curt_core::limits::PAGE_LINKS_MAX;
use curt_core::ports::ListQuery;
use curt_core::{Link, UnixMillis};
use curt_links::{Links, Who};

use super::link_view::counted;
use super::paging::invalid_cursor;
use crate::problem::Problem;

/// Links that can be ranked.
const RANKED_LINKS_MAX: usize = 1_000;
/// Pages of links that are read for it: a filter may leave little of each.
const PAGES_READ_MAX: usize = 16;

/// One page of a ranking.
pub(super) struct RankedPage {
    pub(super) links: Vec<Link>,
    pub(super) clicks: Vec<u64>,
    pub(super) next: Option<String>,
}

/// Ranks all links that the query asks for, those with the most clicks first and equal ones by key. Counts go on while a
/// client pages: a link that overtakes the position is not seen again, and none is seen twice unless it falls back.
pub(super) async fn rank(
    links: Arc<Links>,
    reports: Arc<Reports>,
    who: Who,
    query: ListQuery,
    now: UnixMillis,
) -> Result<RankedPage, Problem> {
    let after = query.cursor.as_deref().map(Position::parse).transpose()?;
    let found = read_all(&links, who, &query).await?;
    let clicks = reports.link_clicks(&counted(&found), now).await?;
    let mut ranked: Vec<(Position, Link)> = found
        .into_iter()
        .zip(clicks)
        .map(|(link, clicks)| (Position::of(&link, clicks), link))
        .filter(|(position, _)| after.as_ref().is_none_or(|after| position > after))
        .collect();
    ranked.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let has_next = ranked.len() > query.limit;
    ranked.truncate(query.limit);
    let last = ranked.last().filter(|_| has_next);
    Ok(RankedPage {
        next: last.map(|(position, _)| position.cursor()),
        clicks: ranked
            .iter()
            .map(|(position, _)| position.clicks.0)
            .collect(),
        links: ranked.into_iter().map(|(_, link)| link).collect(),
    })
}

async fn read_all(links: &Links, who: Who, query: &ListQuery) -> Result<Vec<Link>, Problem> {
    let mut found = Vec::new();
    let mut part = ListQuery {
        limit: PAGE_LINKS_MAX,
        cursor: None,
        ..query.clone()
    };
    for _ in 0..PAGES_READ_MAX {
        let page = links.list(who, part.clone()).await?;
        found.extend(page.links);
        if found.len() > RANKED_LINKS_MAX {
            break;
        }
        part.cursor = page.next;
        if part.cursor.is_none() {
            return Ok(found);
        }
    }
    let message = format!(
        "At most {RANKED_LINKS_MAX} links can be ordered by clicks: narrow the list by tag, state, text or time."
    );
    Err(Problem::invalid_field("order", "too_many", message))
}

/// Where a link stands in the ranking.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    clicks: Reverse<u64>,
    key: String,
}

impl Position {
    fn of(link: &Link, clicks: u64) -> Self {
        Self {
            clicks: Reverse(clicks),
            key: link.id.key.to_string(),
        }
    }

    fn cursor(&self) -> String {
        format!("clicks:{}:{}", self.clicks.0, self.key)
    }

    fn parse(cursor: &str) -> Result<Self, Problem> {
        let mut parts = cursor.splitn(3, ':');
        let mut next = || parts.next().ok_or_else(invalid_cursor);
        if next()? != "clicks" {
            return Err(invalid_cursor());
        }
        let clicks = next()?.parse().map_err(|_| invalid_cursor())?;
        Ok(Self {
            clicks: Reverse(clicks),
            key: next()?.to_owned(),
        })
    }
}
