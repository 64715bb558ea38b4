//! Pages of links.
//!
//! Rows are read in the order of the list, through an index, in windows: the inner query reads a window and the outer
//! one judges its rows. So no page reads more than [`PAGE_ROWS_SCANNED_MAX`] of them. A full page ends a window early.
//!
//! Which rows are read at all depends on the query:
//!
//! - by age: all links, or one owner's, or those with the query's first tag;
//! - by key: all rows. An owner with few links would be a needle among them, so those links are all read and sorted
//!   instead.

use curt_core::limits::{PAGE_LINKS_MAX, PAGE_ROWS_SCANNED_MAX};
use curt_core::ports::{ListOrder, ListPage, ListQuery};
use curt_core::{EffectiveState, Link, OwnerId, PortResult};
use tokio_postgres::types::ToSql;

use super::dialect::Dialect;
use super::page::Position;
use super::record::link_of;
use super::sql::COLUMNS;
use crate::by_index::BY_INDEX;
use crate::engine::{Engine, Step, Value, column};

pub(super) const OP: &str = "list links";

/// Where reads of whole rows say that the row is the last of its window.
const IS_LAST: usize = 21;

/// What is read first for a query with filters; most of them fill a page with it.
const FIRST_WINDOW: usize = 1_000;

pub(super) async fn list(
    engine: &Engine,
    query: &ListQuery,
    after: Option<Position>,
    dialect: Dialect,
) -> PortResult<ListPage> {
    let limit = query.limit.clamp(1, PAGE_LINKS_MAX);
    let source = Source::of(engine, query, dialect).await?;
    let mut after = after;
    let mut links = Vec::new();
    for window in source.windows(query, limit) {
        let wanted = limit + 1 - links.len();
        let from = (source, after.as_ref());
        let part = read(engine, query, from, (window, wanted), dialect).await?;
        links.extend(part.links);
        if links.len() > limit {
            links.truncate(limit);
            let next = links.last().map(Position::of);
            return Ok(page(query, links, next));
        }
        after = part.last;
        if after.is_none() {
            break;
        }
    }
    Ok(page(query, links, after))
}

fn page(query: &ListQuery, links: Vec<Link>, next: Option<Position>) -> ListPage {
    ListPage {
        links,
        next: next.map(|next| next.cursor(query.order)),
    }
}

/// The rows that a list is chosen from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    ByAge,
    ByAgeOfOwner,
    ByAgeOfTag,
    ByKey,
    /// All at once.
    SortedByKey,
}

impl Source {
    async fn of(engine: &Engine, query: &ListQuery, dialect: Dialect) -> PortResult<Self> {
        let has_tag_rows = dialect == Dialect::Plain;
        let by_age = matches!(query.order, ListOrder::NewestFirst | ListOrder::OldestFirst);
        Ok(match query.owner {
            _ if by_age && !query.tags.is_empty() && has_tag_rows => Self::ByAgeOfTag,
            Some(_) if by_age => Self::ByAgeOfOwner,
            None if by_age => Self::ByAge,
            Some(owner) if has_few_links(engine, owner).await? => Self::SortedByKey,
            _ => Self::ByKey,
        })
    }

    /// How many rows are read at a time, until the page is full.
    fn windows(self, query: &ListQuery, limit: usize) -> Vec<usize> {
        let rest = PAGE_ROWS_SCANNED_MAX - FIRST_WINDOW;
        match self {
            Self::SortedByKey => vec![PAGE_ROWS_SCANNED_MAX],
            // Every row that is read is shown.
            Self::ByAge | Self::ByAgeOfOwner if !is_filtered(query) => vec![limit + 1],
            _ => vec![FIRST_WINDOW, rest],
        }
    }
}

fn is_filtered(query: &ListQuery) -> bool {
    query.search.is_some() || query.state.is_some() || query.expires_before.is_some()
}

async fn has_few_links(engine: &Engine, owner: OwnerId) -> PortResult<bool> {
    let sql = "SELECT count(*) <= $2 FROM (SELECT FROM links WHERE owner = $1 AND state < 2 LIMIT $2::bigint + 1) AS own";
    let most = i64::try_from(PAGE_ROWS_SCANNED_MAX).unwrap_or(i64::MAX);
    let rows = engine
        .read(OP, sql, &[&owner.0.cast_signed(), &most])
        .await?;
    rows.first().map_or(Ok(true), |row| column(OP, row, 0))
}

/// What a window holds.
struct Part {
    /// The links in it that the query wants.
    links: Vec<Link>,
    /// Its last row, if it is full.
    last: Option<Position>,
}

async fn read(
    engine: &Engine,
    query: &ListQuery,
    (source, after): (Source, Option<&Position>),
    (window, wanted): (usize, usize),
    dialect: Dialect,
) -> PortResult<Part> {
    let mut statement = Statement {
        dialect,
        ..Statement::default()
    };
    statement.write(query, source, after, window, wanted);
    let values: Vec<Value<'_>> = statement
        .values
        .iter()
        .map(|value| &**value as Value<'_>)
        .collect();
    let read = Step {
        sql: &statement.sql,
        values: &values,
    };
    let rows = match source {
        Source::SortedByKey => engine.read(OP, read.sql, read.values).await?,
        // Its planner is not ours to lead.
        _ if dialect == Dialect::Distributed => engine.read(OP, read.sql, read.values).await?,
        _ => {
            let mut answers = engine.read_in_steps(OP, &[BY_INDEX, read]).await?;
            answers.pop().unwrap_or_default()
        }
    };
    let mut part = Part {
        links: Vec::new(),
        last: None,
    };
    for row in &rows {
        let link = link_of(OP, row)?;
        match column(OP, row, IS_LAST)? {
            true => part.last = Some(Position::of(&link)),
            false => part.links.push(link),
        }
    }
    Ok(part)
}

/// A statement with its parameters.
#[derive(Default)]
struct Statement {
    dialect: Dialect,
    sql: String,
    values: Vec<Box<dyn ToSql + Send + Sync>>,
}

impl Statement {
    /// The wanted rows of a window and then the last row of it, which is looked for only if they are too few.
    fn write(
        &mut self,
        query: &ListQuery,
        source: Source,
        after: Option<&Position>,
        window: usize,
        wanted: usize,
    ) {
        let order = order_of(query.order);
        if source == Source::SortedByKey {
            return self.write_sorted(query, after, wanted);
        }
        let rows = self.rows(query, source, after);
        let filters = self.filters(query);
        let (window, last) = (self.count(window), self.count(window - 1));
        let wanted = self.count(wanted);
        self.sql = format!(
            "(SELECT {COLUMNS}, false FROM ({rows} ORDER BY {order} LIMIT {window}) AS part \
             WHERE {filters} ORDER BY {order} LIMIT {wanted}) UNION ALL \
             (SELECT {COLUMNS}, true FROM ({rows} ORDER BY {order} OFFSET {last} LIMIT 1) AS last) LIMIT {wanted}"
        );
    }

    /// All links of the owner, sorted. The offset keeps the planner from reading everybody's rows in the order of keys
    /// until enough are this owner's.
    fn write_sorted(&mut self, query: &ListQuery, after: Option<&Position>, wanted: usize) {
        let owner = query.owner.unwrap_or_default();
        let owner = self.bind(owner.0.cast_signed());
        let mut filters = self.filters(query);
        if let Some(after) = after {
            let beyond = self.beyond(query.order, after);
            filters = format!("{filters} AND {beyond}");
        }
        let order = order_of(query.order);
        let wanted = self.count(wanted);
        self.sql = format!(
            "SELECT {COLUMNS}, false FROM (SELECT * FROM links WHERE owner = {owner} AND {} OFFSET 0) AS part \
             WHERE {filters} ORDER BY {order} LIMIT {wanted}",
            kept(query)
        );
    }

    /// The number of the parameter that holds the value.
    fn bind(&mut self, value: impl ToSql + Send + Sync + 'static) -> String {
        self.values.push(Box::new(value));
        format!("${}", self.values.len())
    }

    /// Bound, and not written out: each number would be a statement of its own in the connections' caches.
    fn count(&mut self, count: usize) -> String {
        self.bind(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// The rows behind the position, not yet in order.
    fn rows(&mut self, query: &ListQuery, source: Source, after: Option<&Position>) -> String {
        let (table, mut conditions) = match source {
            Source::ByAgeOfTag => {
                let tag = query.tags.first().map(|tag| tag.to_ascii_lowercase());
                let tag = self.bind(tag.unwrap_or_default());
                let tagged = "link_tags JOIN links USING (created_at, domain, key)";
                (tagged, vec![format!("tag = {tag}")])
            }
            Source::ByKey => ("links", vec!["true".to_owned()]),
            _ => ("links", vec![kept(query).to_owned()]),
        };
        if source == Source::ByAgeOfOwner {
            let owner = query.owner.unwrap_or_default();
            conditions.push(format!("owner = {}", self.bind(owner.0.cast_signed())));
        }
        if source != Source::ByKey {
            self.push_times(&mut conditions, query);
        }
        if let Some(after) = after {
            conditions.push(self.beyond(query.order, after));
        }
        format!("SELECT * FROM {table} WHERE {}", conditions.join(" AND "))
    }

    /// Tells apart what [`kept`] does not.
    fn push_state(&mut self, filters: &mut Vec<String>, query: &ListQuery) {
        use EffectiveState::{Active, Deleted, Disabled, Exhausted, Expired, Scheduled};
        let Some(state) = query.state.filter(|state| *state != Deleted) else {
            return;
        };
        filters.push(format!("state = {}", i16::from(state == Disabled)));
        if state == Disabled {
            return;
        }
        let exhausted = self.dialect.exhausted();
        let now = self.bind(query.now.0);
        let expired = format!("coalesce(expires_at <= {now}, false)");
        let scheduled = format!("coalesce(valid_since > {now}, false)");
        filters.push(match state {
            Expired => expired,
            Exhausted => format!("NOT {expired} AND {exhausted}"),
            Scheduled => format!("NOT {expired} AND NOT {exhausted} AND {scheduled}"),
            Active | Disabled | Deleted => {
                format!("NOT {expired} AND NOT {exhausted} AND NOT {scheduled}")
            }
        });
    }

    fn push_times(&mut self, conditions: &mut Vec<String>, query: &ListQuery) {
        if let Some(from) = query.created_from {
            conditions.push(format!("created_at >= {}", self.bind(from.0)));
        }
        if let Some(before) = query.created_before {
            conditions.push(format!("created_at < {}", self.bind(before.0)));
        }
    }

    fn beyond(&mut self, order: ListOrder, after: &Position) -> String {
        let sign = match order {
            ListOrder::OldestFirst | ListOrder::KeyRising => ">",
            ListOrder::NewestFirst | ListOrder::KeyFalling => "<",
        };
        let domain = self.bind(i64::from(after.id.domain.0));
        let key = self.bind(after.id.key.to_string());
        match order {
            ListOrder::NewestFirst | ListOrder::OldestFirst => {
                let created_at = self.bind(after.created_at.0);
                format!("(created_at, domain, key) {sign} ({created_at}, {domain}, {key})")
            }
            _ => format!("(domain, key) {sign} ({domain}, {key})"),
        }
    }

    /// What the query asks of each row.
    fn filters(&mut self, query: &ListQuery) -> String {
        let mut filters = vec![kept(query).to_owned()];
        if let Some(owner) = query.owner {
            filters.push(format!("owner = {}", self.bind(owner.0.cast_signed())));
        }
        self.push_state(&mut filters, query);
        self.push_times(&mut filters, query);
        if let Some(before) = query.expires_before {
            filters.push(format!("expires_at < {}", self.bind(before.0)));
        }
        if let Some(text) = &query.search {
            let text = self.bind(text.to_ascii_lowercase());
            let dialect = self.dialect;
            let holds = |column| format!("strpos({}, {text}) > 0", dialect.lower(column));
            let places = ["key", "target", "title"].map(holds).join(" OR ");
            filters.push(format!("({places})"));
        }
        if !query.tags.is_empty() {
            let tags: Vec<String> = query
                .tags
                .iter()
                .map(|tag| tag.to_ascii_lowercase())
                .collect();
            let tags = self.bind(tags);
            filters.push(format!("{tags}::text[] <@ {}", self.dialect.tags()));
        }
        filters.join(" AND ")
    }
}

/// The statements of a query in the dialect of engines that spread tables.
#[cfg(test)]
pub(super) fn sample_statements(query: &ListQuery) -> Vec<String> {
    let sources = match query.order {
        ListOrder::NewestFirst | ListOrder::OldestFirst => [Source::ByAge, Source::ByAgeOfOwner],
        _ => [Source::ByKey, Source::SortedByKey],
    };
    let written = sources.map(|source| {
        let mut statement = Statement {
            dialect: Dialect::Distributed,
            ..Statement::default()
        };
        statement.write(query, source, None, 100, 10);
        statement.sql
    });
    written.to_vec()
}

/// The rows of links that the query may show; there are indexes over both.
fn kept(query: &ListQuery) -> &'static str {
    match query.state {
        Some(EffectiveState::Deleted) => "state > 3",
        _ => "state < 2",
    }
}

fn order_of(order: ListOrder) -> &'static str {
    match order {
        ListOrder::NewestFirst => "created_at DESC, domain DESC, key DESC",
        ListOrder::OldestFirst => "created_at, domain, key",
        ListOrder::KeyRising => "domain, key",
        ListOrder::KeyFalling => "domain DESC, key DESC",
    }
}
