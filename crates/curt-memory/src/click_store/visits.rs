use std::collections::BTreeMap;

use curt_core::limits::PAGE_ROWS_SCANNED_MAX;
use curt_core::ports::{VisitPage, VisitQuery};
use curt_core::{ClickSubject, ErrorKind, PortError, PortResult, UnixMillis, VisitRow, Visited};

use crate::BACKEND;

/// Visits by their time and, within an instant, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Visits {
    rows: BTreeMap<Place, VisitRow>,
    came: u64,
    bytes: u64,
}

type Place = (UnixMillis, u64);

impl Visits {
    pub(super) fn add(&mut self, visit: VisitRow) {
        let at = visit.at.clamp(UnixMillis(0), UnixMillis::MAX);
        self.came += 1;
        self.bytes += bytes_of(&visit);
        self.rows.insert((at, self.came), VisitRow { at, ..visit });
    }

    pub(super) fn page(&self, query: &VisitQuery) -> PortResult<VisitPage> {
        let end = match &query.cursor {
            Some(cursor) => parse(cursor)?.min((query.before, 0)),
            None => (query.before, 0),
        };
        let start = (query.from, 0);
        let mut page = VisitPage::default();
        if start >= end {
            return Ok(page);
        }
        let mut rows = self.rows.range(start..end).rev();
        for (place, visit) in rows.by_ref().take(PAGE_ROWS_SCANNED_MAX) {
            if is_of(visit, &query.subject) && query.filter.takes(visit) {
                page.visits.push(visit.clone());
            }
            if page.visits.len() >= query.limit {
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

/// About what a visit takes.
fn bytes_of(visit: &VisitRow) -> u64 {
    let texts = [
        &visit.country,
        &visit.browser,
        &visit.system,
        &visit.device,
        &visit.referrer,
        &visit.language,
    ];
    let texts: usize = texts.iter().map(|text| text.len()).sum();
    let tags: usize = visit.tags.iter().map(|tag| tag.len()).sum();
    (size_of::<VisitRow>() + texts + tags) as u64
}

fn is_of(visit: &VisitRow, subject: &ClickSubject) -> bool {
    match subject {
        ClickSubject::Everything => true,
        ClickSubject::Orphans => !matches!(visit.visited, Visited::Link(..)),
        ClickSubject::Owner(owner) => visit.owner == Some(*owner),
        ClickSubject::Tag(owner, tag) => {
            let has = |own: &str| own.eq_ignore_ascii_case(tag);
            visit.owner == Some(*owner) && visit.tags.iter().any(|own| has(own))
        }
        ClickSubject::Link(link, of) => {
            matches!(&visit.visited, Visited::Link(id, generation) if (id, generation) == (link, of))
        }
    }
}

/// The visits before this place are the next page.
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
            "list visits",
            "the cursor is not one of this list",
        )
    })
}
