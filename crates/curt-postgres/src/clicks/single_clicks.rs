//! Single clicks, in the order of time.

use std::borrow::Cow;
use std::net::IpAddr;

use curt_core::limits::PAGE_ROWS_SCANNED_MAX;
use curt_core::ports::{ClickPage, ClickQuery};
use curt_core::{
    Click, ClickClass, ClickOutcome, ClickSubject, ErrorKind, LinkId, PortError, PortResult,
    UnixMillis,
};
use deadpool_postgres::Transaction;
use tokio_postgres::{Error, Row};

use super::apply::query;
use super::subject::without_nul;
use crate::array_text::array_text;
use crate::by_index::BY_INDEX;
use crate::decode::{corrupt, number, owner_or_none, parse_key, rows_max, time};
use crate::engine::{Engine, Step, Value, column};
use crate::failure::BACKEND;
use curt_adapter_kit::click_days::{link_number, link_of_number};
use curt_adapter_kit::page_cursor;

const OP: &str = "list clicks";
/// Part of the cursors that clients hold.
const LIST: &str = "postgres-clicks";

/// What is read first for a query with filters; most of them fill a page with it.
const FILTERED_WINDOW: usize = 1_000;

/// About what a row takes, with its entries in the indexes.
macro_rules! click_bytes {
    () => {
        "(200 + 2 * octet_length(coalesce(key, '')) + octet_length(country) + octet_length(browser) \
         + octet_length(system) + octet_length(device) + octet_length(referrer) + octet_length(language) \
         + octet_length(array_to_string(coalesce(tags, '{}'), ',')))::bigint"
    };
}
pub(super) use click_bytes;

const ADD: &str = concat!(
    "WITH added AS (INSERT INTO clicks (at, domain, key, owner, class, country, browser, system, device, referrer, \
     language, tags, address) \
     SELECT at, domain, key, owner, class, country, browser, system, device, referrer, language, tags::text[], address \
     FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::smallint[], $6::text[], $7::text[], \
     $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::inet[]) WITH ORDINALITY \
     AS new (at, domain, key, owner, class, country, browser, system, device, referrer, language, tags, address, place) \
     ORDER BY place RETURNING ",
    click_bytes!(),
    " AS bytes) SELECT coalesce(sum(bytes), 0)::bigint FROM added"
);
/// Everybody's row: changed last, like the counts of everything.
const GROW: &str = "UPDATE clicks_size SET bytes = bytes + $1";

macro_rules! select {
    ($condition:literal) => {
        concat!(
            "SELECT at, id, domain, key, owner, class, country, browser, system, device, referrer, language, tags, \
             address FROM clicks WHERE at >= $1 AND (at, id) < ($2, $3) AND ",
            $condition,
            " ORDER BY at DESC, id DESC LIMIT $4"
        )
    };
}

const OF_EVERYTHING: &str = select!("true");
const OF_ORPHANS: &str = select!("domain IS NULL");
const OF_OWNER: &str = select!("owner = $5");
const OF_LINK: &str = select!("domain = $5 AND key = $6");

/// Says about how many bytes they take.
pub(super) async fn add(transaction: &Transaction<'_>, clicks: &[Click]) -> Result<i64, Error> {
    if clicks.is_empty() {
        return Ok(0);
    }
    let mut columns = Columns::default();
    for click in clicks {
        columns.push(click);
    }
    let rows = query(transaction, ADD, &columns.values()).await?;
    rows.first().map_or(Ok(0), |row| row.try_get(0))
}

/// Notes that the clicks take so many bytes more.
pub(super) async fn grow(transaction: &Transaction<'_>, bytes: i64) -> Result<(), Error> {
    match bytes {
        0 => Ok(()),
        _ => query(transaction, GROW, &[&bytes]).await.map(drop),
    }
}

/// Clicks by column.
#[derive(Default)]
struct Columns<'a> {
    at: Vec<i64>,
    domain: Vec<Option<i64>>,
    key: Vec<Option<Cow<'a, str>>>,
    owner: Vec<Option<i64>>,
    class: Vec<i16>,
    /// Country, browser, system, device, referrer, language.
    texts: [Vec<Cow<'a, str>>; 6],
    tags: Vec<Option<String>>,
    address: Vec<Option<IpAddr>>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, click: &'a Click) {
        let (domain, key) = match &click.outcome {
            ClickOutcome::Link(id, generation) => (
                Some(link_number(id.domain, *generation)),
                Some(id.key.as_str()),
            ),
            ClickOutcome::Absent(key) => (None, Some(&**key)),
            ClickOutcome::BaseUrl => (None, None),
        };
        self.at.push(click.at.0.clamp(0, UnixMillis::MAX.0));
        self.domain.push(domain);
        self.key.push(key.map(without_nul));
        self.owner
            .push(click.owner.map(|owner| owner.0.cast_signed()));
        self.class.push(click.class as i16);
        let texts = [
            &click.country,
            &click.browser,
            &click.system,
            &click.device,
            &click.referrer,
            &click.language,
        ];
        for (column, text) in self.texts.iter_mut().zip(texts) {
            column.push(without_nul(text));
        }
        let tags: Vec<Cow<'_, str>> = click.tags.iter().map(|tag| without_nul(tag)).collect();
        let tags = (!tags.is_empty()).then(|| array_text(tags.iter().map(|tag| Some(&**tag))));
        self.tags.push(tags);
        self.address.push(click.address);
    }

    /// The parameters `$1` to `$13`.
    fn values(&self) -> Vec<Value<'_>> {
        let mut values: Vec<Value<'_>> =
            vec![&self.at, &self.domain, &self.key, &self.owner, &self.class];
        values.extend(self.texts.iter().map(|column| column as Value<'_>));
        values.extend([&self.tags as Value<'_>, &self.address]);
        values
    }
}

/// A place between clicks: behind those that are older than its instant or came before its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    at: i64,
    id: i64,
}

impl Place {
    /// Where the query's page begins.
    fn of(query: &ClickQuery) -> PortResult<Self> {
        let end = Self {
            at: query.before.0,
            id: 0,
        };
        let Some(cursor) = &query.cursor else {
            return Ok(end);
        };
        let after = Self::read(cursor).ok_or_else(|| {
            let detail = "the cursor is not one of this list";
            PortError::new(ErrorKind::Invalid, BACKEND, OP, detail)
        })?;
        Ok(end.min(after))
    }

    fn read(cursor: &str) -> Option<Self> {
        let (at, id) = page_cursor::unseal(LIST, cursor)?.split_once(':')?;
        Some(Self {
            at: at.parse().ok()?,
            id: id.parse().ok()?,
        })
    }

    fn cursor(self) -> Box<str> {
        page_cursor::seal(LIST, &format!("{}:{}", self.at, self.id))
    }
}

/// Rows are read through an index, in windows that grow, and judged here.
pub(super) async fn page(engine: &Engine, query: &ClickQuery) -> PortResult<ClickPage> {
    let mut place = Place::of(query)?;
    let mut page = ClickPage::default();
    let mut window = first_window(query);
    let mut scanned = 0;
    while scanned < PAGE_ROWS_SCANNED_MAX {
        window = window.min(PAGE_ROWS_SCANNED_MAX - scanned);
        let rows = read(engine, query, place, window).await?;
        for row in &rows {
            if page.clicks.len() >= query.limit {
                page.next = Some(place.cursor());
                return Ok(page);
            }
            place = Place {
                at: column(OP, row, 0)?,
                id: column(OP, row, 1)?,
            };
            let click = click_of(row)?;
            if has_tag(&click, &query.subject) && query.filter.takes(&click) {
                page.clicks.push(click);
            }
        }
        if rows.len() < window {
            return Ok(page);
        }
        scanned += window;
        window = window.saturating_mul(4);
    }
    page.next = Some(place.cursor());
    Ok(page)
}

/// One row more than the page shows tells whether there is a next one.
fn first_window(query: &ClickQuery) -> usize {
    let takes_all = query.filter.class.is_none() && query.filter.values.is_empty();
    let shown = query.limit.saturating_add(1);
    match (takes_all, &query.subject) {
        (false, _) | (_, ClickSubject::Tag(..)) => shown.max(FILTERED_WINDOW),
        _ => shown,
    }
}

async fn read(
    engine: &Engine,
    query: &ClickQuery,
    place: Place,
    window: usize,
) -> PortResult<Vec<Row>> {
    let rows = rows_max(window);
    let mut values: Vec<Value<'_>> = vec![&query.from.0, &place.at, &place.id, &rows];
    let (owner, domain, key);
    let sql = match &query.subject {
        ClickSubject::Everything => OF_EVERYTHING,
        ClickSubject::Orphans => OF_ORPHANS,
        ClickSubject::Owner(id) | ClickSubject::Tag(id, _) => {
            owner = id.0.cast_signed();
            values.push(&owner);
            OF_OWNER
        }
        ClickSubject::Link(id, generation) => {
            (domain, key) = (link_number(id.domain, *generation), id.key.as_str());
            values.extend([&domain as Value<'_>, &key]);
            OF_LINK
        }
    };
    let values = &values;
    let steps = [BY_INDEX, Step { sql, values }];
    let mut answers = engine.read_in_steps(OP, &steps).await?;
    Ok(answers.pop().unwrap_or_default())
}

fn has_tag(click: &Click, subject: &ClickSubject) -> bool {
    match subject {
        ClickSubject::Tag(_, tag) => click.tags.iter().any(|own| own.eq_ignore_ascii_case(tag)),
        _ => true,
    }
}

fn click_of(row: &Row) -> PortResult<Click> {
    let text = |index: usize| -> PortResult<Box<str>> { column(OP, row, index) };
    let tags: Option<Vec<Box<str>>> = column(OP, row, 12)?;
    Ok(Click {
        at: time(OP, row, 0)?,
        outcome: outcome(row)?,
        owner: owner_or_none(OP, row, 4)?,
        tags: tags.unwrap_or_default(),
        class: number(OP, row, 5, ClickClass::from_stored)?,
        country: text(6)?,
        browser: text(7)?,
        system: text(8)?,
        device: text(9)?,
        referrer: text(10)?,
        language: text(11)?,
        address: column(OP, row, 13)?,
    })
}

fn outcome(row: &Row) -> PortResult<ClickOutcome> {
    let domain: Option<i64> = column(OP, row, 2)?;
    let key: Option<&str> = column(OP, row, 3)?;
    match (domain, key) {
        (Some(domain), Some(key)) => {
            let (domain, generation) = link_of_number(domain);
            let id = LinkId::new(domain, parse_key(OP, key)?);
            Ok(ClickOutcome::Link(id, generation))
        }
        (None, Some(key)) => Ok(ClickOutcome::Absent(key.into())),
        (None, None) => Ok(ClickOutcome::BaseUrl),
        (Some(domain), None) => Err(corrupt(OP, domain)),
    }
}
