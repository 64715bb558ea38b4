use std::collections::BTreeMap;

use curt_core::click::OTHER;
use curt_core::click_block::{Block, NewBlock};
use curt_core::limits::{PAGE_ROWS_SCANNED_MAX, VALUES_RANKED_MAX};
use curt_core::ports::{ClickPage, ClickQuery, ClickRanking, StreamPartition, Top};
use curt_core::varint::Damaged;
use curt_core::{
    Click, ClickOutcome, ClickSubject, Dimension, ErrorKind, PortError, PortResult, UnixMillis,
};

use crate::BACKEND;

/// Clicks by their time and, within an instant, by their window and in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct SingleClicks {
    rows: BTreeMap<Place, Click>,
    bytes: u64,
}

/// Time, start of the window, stream, partition, number in the window.
type Place = (UnixMillis, u64, u64, u32, u64);

impl SingleClicks {
    pub(super) fn add(&mut self, block: &NewBlock) -> Result<(), Damaged> {
        let block = Block::read(&block.bytes)?;
        let clicks = block.clicks()?;
        for (row, place) in block.places().into_iter().enumerate() {
            let click = clicks.get(row)?;
            self.bytes += bytes_of(&click);
            let StreamPartition { stream, number } = place.partition;
            let place = (place.at, place.from, stream.0, number, place.number);
            self.rows.insert(place, click);
        }
        Ok(())
    }

    pub(super) fn page(&self, query: &ClickQuery) -> PortResult<ClickPage> {
        let end = match &query.cursor {
            Some(cursor) => parse(cursor)?.min(first_at(query.before)),
            None => first_at(query.before),
        };
        let start = first_at(query.from);
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
        let Some((&(at, from, stream, number, place), _)) = rows.next() else {
            page.next = None;
            return Ok(page);
        };
        page.next
            .get_or_insert_with(|| cursor((at, from, stream, number, place + 1)));
        Ok(page)
    }

    pub(super) fn rank(&self, ranking: &ClickRanking) -> Top {
        let mut counts = BTreeMap::<Box<str>, u64>::new();
        let is_asked = |click: &&Click| {
            (ranking.from..ranking.before).contains(&click.at)
                && is_of(click, &ranking.subject)
                && ranking.filter.takes(click)
        };
        for click in self.rows.values().rev().filter(is_asked) {
            let Some(value) = click.value(ranking.dimension) else {
                continue;
            };
            let is_ranked = counts.len() < VALUES_RANKED_MAX || counts.contains_key(value);
            let value = if is_ranked { value } else { OTHER };
            *counts.entry(value.into()).or_default() += 1;
        }
        Top::of(counts, ranking.limit)
    }

    pub(super) fn purge(&mut self, before: UnixMillis, limit: usize) -> u64 {
        let old = self.rows.range(..first_at(before)).take(limit);
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

    pub(super) fn erase(&mut self, subject: &ClickSubject) -> u64 {
        let own = self.rows.iter().filter(|(_, click)| is_of(click, subject));
        let own: Vec<Place> = own.map(|(place, _)| *place).collect();
        for place in &own {
            self.remove(*place);
        }
        own.len() as u64
    }

    fn remove(&mut self, place: Place) {
        let removed = self.rows.remove(&place);
        let bytes = removed.as_ref().map_or(0, bytes_of);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// About what a click takes.
fn bytes_of(click: &Click) -> u64 {
    let values = Dimension::ALL.into_iter();
    let values = values.filter_map(|dimension| click.value(dimension));
    let texts = values.chain(click.tags.iter().map(|tag| &**tag));
    (size_of::<Click>() + texts.map(str::len).sum::<usize>()) as u64
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

fn first_at(at: UnixMillis) -> Place {
    (at, 0, 0, 0, 0)
}

/// The clicks before this place are the next page.
fn cursor((at, from, stream, number, place): Place) -> Box<str> {
    format!("memory:{}:{from}:{stream}:{number}:{place}", at.0).into()
}

fn parse(cursor: &str) -> PortResult<Place> {
    let place = || {
        let mut parts = cursor.strip_prefix("memory:")?.split(':');
        let at = UnixMillis(parts.next()?.parse().ok()?);
        let from = parts.next()?.parse().ok()?;
        let stream = parts.next()?.parse().ok()?;
        let number = parts.next()?.parse().ok()?;
        Some((at, from, stream, number, parts.next()?.parse().ok()?))
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
