//! Runs of counts as they are found: by day, and small ones by id.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as MapEntry;

use crate::rollup_runs::{FoundChunk, RunEntry, SMALL_BYTES};
use curt_core::{Day, ErrorKind, PortError, PortResult};

use super::WideClicks;
use super::manifest::RunRow;
use super::rows::{CataloguedRun, DamagedKind};
use crate::wide_column::ordered::{ListPlace, Span};
use crate::wide_column::{ReadMode, pause, together};

const DAYS: &str = "clicks/days";
const SMALL: &str = "clicks/small-runs";
/// How often a day is read again because its runs were merged meanwhile.
const TRIES_MAX: usize = 10;
const ENTRIES_AT_ONCE: usize = 200;

impl WideClicks {
    pub(super) async fn find_chunks(
        &self,
        op: &'static str,
        key: &[u8],
        first: Day,
        last: Day,
        limit: usize,
    ) -> PortResult<Vec<FoundChunk>> {
        let (mut found, mut days) = (Vec::new(), 0);
        let mut span = days_between(first, last);
        while days < limit {
            let wanted = (limit - days).min(ENTRIES_AT_ONCE);
            let entries = self.lists.read(op, &span, wanted).await?;
            let read = entries.entries.iter().map(|entry| {
                let day = day_at(&entry.place.position);
                async move {
                    match day {
                        Some(day) => self.find_in_day(op, key, day).await,
                        None => Ok(Vec::new()),
                    }
                }
            });
            for chunks in together(read).await? {
                days += usize::from(!chunks.is_empty());
                found.extend(chunks);
            }
            if let Some(last) = entries.entries.last() {
                span.follow(&last.place);
            }
            if entries.is_all {
                break;
            }
        }
        Ok(found)
    }

    async fn find_in_day(
        &self,
        op: &'static str,
        key: &[u8],
        day: i32,
    ) -> PortResult<Vec<FoundChunk>> {
        for _ in 0..TRIES_MAX {
            let runs = self.rows.get_runs(op, day, ReadMode::Acknowledged).await?;
            let reads = runs.iter().map(|(id, run)| {
                let chunk = run.chunks.range(..=key.to_vec()).next_back();
                let chunk = chunk.map(|(_, content)| *content);
                async move {
                    let content = match chunk {
                        Some(chunk) => Some(self.rows.get_content(op, chunk).await?),
                        None => None,
                    };
                    Ok((*id, run.edits, content))
                }
            });
            let read = together(reads).await?;
            // What was merged meanwhile is gone: its counts are in another run.
            if read.iter().any(|(_, _, content)| *content == Some(None)) {
                pause().await;
                continue;
            }
            let chunk = |(run, edits, content): (i64, i64, Option<Option<Vec<u8>>>)| FoundChunk {
                day: Day::numbered(day.cast_unsigned()),
                run,
                edits,
                content: content.flatten(),
            };
            return Ok(read.into_iter().map(chunk).collect());
        }
        let detail = "runs are being merged, or a chunk is missing; try again";
        Err(PortError::new(
            ErrorKind::Unavailable,
            self.deadlines.backend,
            op,
            detail,
        ))
    }

    pub(super) async fn small_runs(
        &self,
        op: &'static str,
        limit: usize,
    ) -> PortResult<Vec<RunEntry>> {
        let damaged = self.rows.get_damage(op, DamagedKind::Run).await?;
        let mut span = Span::all(SMALL, false);
        let mut days: BTreeMap<i32, BTreeMap<i64, CataloguedRun>> = BTreeMap::new();
        let mut found = Vec::new();
        while found.len() < limit {
            let wanted = (limit - found.len()).min(ENTRIES_AT_ONCE);
            let entries = self.lists.read(op, &span, wanted).await?;
            let mut stale = Vec::new();
            for entry in entries.entries {
                span.follow(&entry.place);
                let Some((id, day)) = run_at(&entry.place.position) else {
                    continue;
                };
                if let MapEntry::Vacant(unread) = days.entry(day) {
                    unread.insert(self.rows.get_runs(op, day, ReadMode::Acknowledged).await?);
                }
                let run = days.get(&day).and_then(|runs| runs.get(&id));
                let is_small = |run: &&CataloguedRun| run.bytes.cast_unsigned() < SMALL_BYTES;
                match run.filter(is_small) {
                    Some(_) if damaged.iter().any(|(noted, _)| *noted == id) => {}
                    Some(run) => found.push(RunEntry {
                        id,
                        day: Day::numbered(day.cast_unsigned()),
                        bytes: run.bytes.cast_unsigned(),
                        edits: run.edits,
                    }),
                    None => stale.push(entry),
                }
            }
            self.lists.drop_stale(op, stale).await;
            if entries.is_all {
                break;
            }
        }
        Ok(found)
    }
}

/// Where a run is looked for: by its day, and by its id while it is small.
pub(super) fn places_of(run: &RunRow) -> Vec<ListPlace> {
    let day = run.day.cast_unsigned().to_be_bytes();
    let mut places = vec![ListPlace {
        list: DAYS.to_owned(),
        bucket: vec![0],
        position: day.to_vec(),
    }];
    if run.bytes.cast_unsigned() < SMALL_BYTES {
        places.push(ListPlace {
            list: SMALL.to_owned(),
            bucket: vec![0],
            position: [&run.id.to_be_bytes()[..], &day].concat(),
        });
    }
    places
}

pub(super) fn days_between(first: Day, last: Day) -> Span {
    let mut span = Span::all(DAYS, true);
    // Positions at the ends are left out: one day before, and one behind.
    if let Some(before) = first.number().checked_sub(1) {
        span.positions.0 = before.to_be_bytes().to_vec();
    }
    if let Some(behind) = last.number().checked_add(1) {
        span.positions.1 = behind.to_be_bytes().to_vec();
    }
    span
}

pub(super) fn day_at(position: &[u8]) -> Option<i32> {
    let bytes = position.try_into().ok()?;
    Some(u32::from_be_bytes(bytes).cast_signed())
}

fn run_at(position: &[u8]) -> Option<(i64, i32)> {
    let (id, day) = position.split_first_chunk::<8>()?;
    Some((i64::from_be_bytes(*id), day_at(day)?))
}
