use std::collections::BTreeMap;

use curt_core::limits::PAGE_ROWS_SCANNED_MAX;
use curt_core::ports::{ClickPage, ClickQuery};
use curt_core::{Click, ClickOutcome, ClickSubject, ErrorKind, PortError, PortResult, UnixMillis};

use crate::BACKEND;

/// SingleClicks by their time and, within an instant, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct SingleClicks {
    rows: BTreeMap<Place, Click>,
    came: u64,
    bytes: u64,
}

type Place = (UnixMillis, u64);

impl SingleClicks {
    pub(super) fn add(&mut self, click: Click) {
        let at = click.at.clamp(UnixMillis(0), UnixMillis::MAX);
        self.came += 1;
        self.bytes += bytes_of(&click);
        self.rows.insert((at, self.came), Click { at, ..click });
    }

    pub(super) fn page(&self, query: &ClickQuery) -> PortResult<ClickPage> {
        let end = match &query.cursor {
            Some(cursor) => parse(cursor)?.min((query.before, 0)),
            None => (query.before, 0),
        };
        let start = (query.from, 0);
        let mut page = ClickPage::default();
        if start >= end {
            return Ok(page);
        }
        let mut rows = self.rows.range(start..end).rev();
        for (place, click) in rows.by_ref().take(PAGE_ROWS_SCANNED_MAX) {
            if is_of(click, &query.subject) && query.filter.takes(click) {
                page.clicks.push(click.clone());
            }
            if page.clicks.len() >= query.limit {
                page.next = Some(cursor(*place));
                break;
            }
        }
        let Some(((at, came), _)) = rows.next() else {
            page.next = None;
            return Ok(page);
        };
        page.next.get_or_insert_with(|| cursor((*at, came + 1)));
        Ok(page)
    }

    pub(super) fn purge(&mut self, before: UnixMillis, limit: usize) -> u64 {
        let old = self.rows.range(..(before, 0)).take(limit);
        let old: Vec<Place> = old.map(|(place, _)| *place).collect();
        for place in &old {
            self.remove(*place);
        }
        old.len() as u64
    }

    pub(super) fn trim(&mut self, bytes_max: u64, limit: usize) -> u64 {
        let mut trimmed = 0;
        while self.bytes > bytes_max && trimmed < limit as u64 {
            let Some((&oldest, _)) = self.rows.first_key_value() else {
                break;
            };
            self.remove(oldest);
            trimmed += 1;
        }
        trimmed
    }

    fn remove(&mut self, place: Place) {
        let removed = self.rows.remove(&place);
        let bytes = removed.as_ref().map_or(0, bytes_of);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// About what a click takes.
fn bytes_of(click: &Click) -> u64 {
    let texts = [
        &click.country,
        &click.browser,
        &click.system,
        &click.device,
        &click.referrer,
        &click.language,
    ];
    let texts: usize = texts.iter().map(|text| text.len()).sum();
    let tags: usize = click.tags.iter().map(|tag| tag.len()).sum();
    (size_of::<Click>() + texts + tags) as u64
}

fn is_of(click: &Click, subject: &ClickSubject) -> bool {
    match subject {
        ClickSubject::Everything => true,
        ClickSubject::Orphans => !matches!(click.outcome, ClickOutcome::Link(..)),
        ClickSubject::Owner(owner) => click.owner == Some(*owner),
        ClickSubject::Tag(owner, tag) => {
            let has = |own: &str| own.eq_ignore_ascii_case(tag);
            click.owner == Some(*owner) && click.tags.iter().any(|own| has(own))
        }
        ClickSubject::Link(link, of) => {
            matches!(&click.outcome, ClickOutcome::Link(id, generation) if (id, generation) == (link, of))
        }
    }
}

/// The clicks before this place are the next page.
fn cursor((at, came): Place) -> Box<str> {
    format!("memory:{}:{came}", at.0).into_boxed_str()
}

fn parse(cursor: &str) -> PortResult<Place> {
    let place = || {
        let (at, came) = cursor.strip_prefix("memory:")?.split_once(':')?;
        Some((UnixMillis(at.parse().ok()?), came.parse().ok()?))
    };
    place().ok_or_else(|| {
        PortError::new(
            ErrorKind::Invalid,
            BACKEND,
            "list clicks",
            "the cursor is not one of this list",
        )
    })
}
