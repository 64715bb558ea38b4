//! Merging runs of one day, so that reports find few of them.

use curt_core::{Day, ErrorKind, PortResult};

use super::chunk::{EntryReader, RunWriter};
use super::{NewRun, RUN_BYTES_MAX, RollupRuns, RunEntry};
use crate::varint::Damaged;

/// Runs of about the same size that are merged. What was counted is written again for every power of this.
const FAN_IN: usize = 8;
/// Of a day that is over: few runs will join these, and reports on it come for years.
const FAN_IN_OF_PAST: usize = 2;
/// More than there can be of the days that are counted now, with some to spare for other processes.
const RUNS_LISTED: usize = 256;

/// Merges small runs until there are few of each day and size.
pub async fn merge_small(runs: &dyn RollupRuns) -> PortResult<()> {
    loop {
        let small = runs.list_small(RUNS_LISTED).await?;
        let Some(group) = group_of(&small) else {
            return Ok(());
        };
        let mut chunks = Vec::new();
        for run in &group {
            match runs.read(run.id).await {
                Ok(read) => chunks.push(read),
                // The others are merged without it in the next round.
                Err(error) if error.kind == ErrorKind::Corrupt => {
                    runs.set_aside(run.id).await?;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if chunks.len() < group.len() {
            continue;
        }
        match merge(group[0].day, &chunks) {
            Err(DamagedRun(place)) => runs.set_aside(group[place].id).await?,
            Ok(merged) => {
                if !runs.replace(&group, merged).await? {
                    // Another process does the same.
                    return Ok(());
                }
            }
        }
    }
}

/// The oldest runs of the smallest size of which a day has enough.
pub(super) fn group_of(small: &[RunEntry]) -> Option<Vec<RunEntry>> {
    let newest = small.iter().map(|run| run.day).max()?;
    let size = |run: &RunEntry| run.bytes.max(1).ilog2() / FAN_IN.ilog2();
    let mut sorted = small.to_vec();
    sorted.sort_unstable_by_key(|run| (run.day, size(run), run.id));
    let same = |one: &RunEntry, next: &RunEntry| one.day == next.day && size(one) == size(next);
    let group = sorted.chunk_by(same).find(|group| {
        let is_past = group[0].day < newest.minus(1);
        group.len() >= if is_past { FAN_IN_OF_PAST } else { FAN_IN }
    })?;
    let mut bytes = 0;
    let oldest = group.iter().take_while(|run| {
        bytes += run.bytes;
        bytes <= RUN_BYTES_MAX
    });
    Some(oldest.copied().collect())
}

/// The place of the run that cannot be read.
#[derive(Debug)]
struct DamagedRun(usize);

/// Adds up what the runs, each given by its chunks, counted for the same subjects.
fn merge(day: Day, runs: &[Vec<Vec<u8>>]) -> Result<NewRun, DamagedRun> {
    let mut readers: Vec<EntryReader<'_>> = runs.iter().map(|run| EntryReader::new(run)).collect();
    for (place, reader) in readers.iter_mut().enumerate() {
        reader.advance().map_err(|Damaged| DamagedRun(place))?;
    }
    let mut merged = RunWriter::new(day);
    let mut least = Vec::new();
    while let Some(key) = readers.iter().filter_map(EntryReader::key).min() {
        least.clear();
        least.extend_from_slice(key);
        push_sum(&mut merged, &least, &readers)?;
        for (place, reader) in readers.iter_mut().enumerate() {
            if reader.key() == Some(&least) {
                reader.advance().map_err(|Damaged| DamagedRun(place))?;
            }
        }
    }
    Ok(merged.finish())
}

fn push_sum(
    merged: &mut RunWriter,
    key: &[u8],
    readers: &[EntryReader<'_>],
) -> Result<(), DamagedRun> {
    let entries = readers
        .iter()
        .enumerate()
        .filter(|(_, reader)| reader.key() == Some(key))
        .filter_map(|(place, reader)| Some((place, reader.day()?)));
    let mut entries = entries.peekable();
    let Some((_, first)) = entries.next() else {
        return Ok(());
    };
    // Most subjects are in one of the runs, and are copied as they are.
    if entries.peek().is_none() {
        merged.push(key, first);
        return Ok(());
    }
    let mut sum = first.to_stored();
    for (place, day) in entries {
        sum.merge(day).map_err(|Damaged| DamagedRun(place))?;
    }
    merged.push(key, sum.as_bytes());
    Ok(())
}
