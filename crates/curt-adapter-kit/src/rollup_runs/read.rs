//! Reports on a subject, from every run of the days that they are about.

use curt_core::ports::{ClickOverview, HourRange, Top};
use curt_core::{ClickSubject, Day, Dimension, ErrorKind, PortError, PortResult, Rollup};

use super::chunk::EntryReader;
use super::subject_key::subject_key;
use super::{FoundChunk, RollupRuns};
use crate::click_days::{DayBytes, Ranking, Series, StoredDay, estimate};
use crate::off_runtime;
use crate::varint::Damaged;

/// Days that are read at once. While they are added up, as many more are read.
const DAYS_READ: usize = 24;

pub async fn read_series(
    runs: &dyn RollupRuns,
    subject: &ClickSubject,
    dimension: Dimension,
    range: HourRange,
) -> PortResult<Vec<Rollup>> {
    const OP: &str = "read clicks by the hour";
    let series = Series::new(dimension, range);
    let add = |series: &mut Series, day, stored: DayBytes<'_>| series.add(day, stored.counts);
    let series = for_each_day(runs, OP, subject, days_of(range), series, add).await?;
    Ok(series.finish())
}

pub async fn read_top(
    runs: &dyn RollupRuns,
    subject: &ClickSubject,
    dimension: Dimension,
    range: HourRange,
    limit: usize,
) -> PortResult<Top> {
    const OP: &str = "rank clicks";
    let ranking = Ranking::new(dimension, range);
    let add = |ranking: &mut Ranking, day, stored: DayBytes<'_>| ranking.add(day, stored.counts);
    let ranking = for_each_day(runs, OP, subject, days_of(range), ranking, add).await?;
    Ok(ranking.finish(limit))
}

/// An overview that grows day by day.
struct OverviewReader {
    range: HourRange,
    series: Series,
    visitors: Vec<(Day, u64)>,
    rankings: Vec<Ranking>,
}

impl OverviewReader {
    fn add(&mut self, day: Day, stored: DayBytes<'_>) -> Result<(), Damaged> {
        self.series.add(day, stored.counts)?;
        let days = self.range.days();
        if days.is_some_and(|(from, before)| (from..before).contains(&day)) {
            add_visitors(&mut self.visitors, day, stored)?;
        }
        let mut rankings = self.rankings.iter_mut();
        rankings.try_for_each(|ranking| ranking.add(day, stored.counts))
    }
}

/// From one reading of the runs.
pub async fn read_overview(
    runs: &dyn RollupRuns,
    subject: &ClickSubject,
    dimensions: &[(Dimension, usize)],
    range: HourRange,
) -> PortResult<ClickOverview> {
    const OP: &str = "read an overview of clicks";
    let new = |(dimension, _): &(Dimension, usize)| Ranking::new(*dimension, range);
    let reader = OverviewReader {
        range,
        series: Series::new(Dimension::Class, range),
        visitors: Vec::new(),
        rankings: dimensions.iter().map(new).collect(),
    };
    let add = OverviewReader::add;
    let read = for_each_day(runs, OP, subject, days_of(range), reader, add).await?;
    let limits = dimensions.iter().map(|(_, limit)| *limit);
    let finished = read.rankings.into_iter().zip(limits);
    Ok(ClickOverview {
        series: read.series.finish(),
        visitors: read.visitors,
        tops: finished
            .map(|(ranking, limit)| ranking.finish(limit))
            .collect(),
    })
}

pub async fn read_visitors(
    runs: &dyn RollupRuns,
    subject: &ClickSubject,
    from: Day,
    before: Day,
) -> PortResult<Vec<(Day, u64)>> {
    const OP: &str = "count visitors";
    let days = (from < before).then(|| (from, before.minus(1)));
    for_each_day(runs, OP, subject, days, Vec::new(), add_visitors).await
}

fn add_visitors(
    counted: &mut Vec<(Day, u64)>,
    day: Day,
    stored: DayBytes<'_>,
) -> Result<(), Damaged> {
    counted.extend(estimate(stored.visitors)?.map(|count| (day, count)));
    Ok(())
}

/// The days that a range touches, both included.
fn days_of(range: HourRange) -> Option<(Day, Day)> {
    (range.from < range.before).then(|| (Day::of(range.from), Day::of(range.before)))
}

/// Shows `add` each day on which something was counted for the subject, in their order.
async fn for_each_day<T: Send + 'static>(
    runs: &dyn RollupRuns,
    op: &'static str,
    subject: &ClickSubject,
    days: Option<(Day, Day)>,
    mut state: T,
    add: fn(&mut T, Day, DayBytes<'_>) -> Result<(), Damaged>,
) -> PortResult<T> {
    let Some((from, last)) = days else {
        return Ok(state);
    };
    let (backend, key) = (runs.backend(), subject_key(subject));
    let mut found = runs.find(&key, from, last, DAYS_READ).await?;
    while let Some(end) = found.last().map(|chunk| chunk.day) {
        let of_key = key.clone();
        let adding = off_runtime(backend, op, move || {
            for chunks in found.chunk_by(|one, next| one.day == next.day) {
                let day = chunks[0].day;
                let added = add_day(&of_key, chunks, day, &mut state, add);
                added.map_err(|damaged| corrupt(backend, op, day, damaged))?;
            }
            Ok(state)
        });
        let reading = async {
            match end < last {
                true => runs.find(&key, end.next(), last, DAYS_READ).await,
                false => Ok(Vec::new()),
            }
        };
        (state, found) = tokio::try_join!(adding, reading)?;
    }
    Ok(state)
}

/// Shows `add` what all chunks of the day have of the subject, if anything.
fn add_day<T>(
    key: &[u8],
    chunks: &[FoundChunk],
    day: Day,
    state: &mut T,
    add: fn(&mut T, Day, DayBytes<'_>) -> Result<(), Damaged>,
) -> Result<(), Damaged> {
    // Days that are over have one, most of the time, which needs no copy.
    if let [chunk] = chunks {
        let entries = find_entry(key, chunk)?;
        let found = entries.as_ref().and_then(EntryReader::day);
        return found.map_or(Ok(()), |found| add(state, day, found));
    }
    match sum_of(key, chunks)? {
        Some(sum) => add(state, day, sum.as_bytes()),
        None => Ok(()),
    }
}

/// The chunk, open at the subject's entry; `None`: it has none.
fn find_entry<'a>(key: &[u8], chunk: &'a FoundChunk) -> Result<Option<EntryReader<'a>>, Damaged> {
    let Some(content) = &chunk.content else {
        return Ok(None);
    };
    let mut entries = EntryReader::new(std::slice::from_ref(content));
    entries.advance()?;
    while entries.key().is_some_and(|own| own < key) {
        entries.advance()?;
    }
    Ok((entries.key() == Some(key)).then_some(entries))
}

/// What all chunks have of the subject; `None`: nothing.
fn sum_of(key: &[u8], chunks: &[FoundChunk]) -> Result<Option<StoredDay>, Damaged> {
    let mut sum: Option<StoredDay> = None;
    for chunk in chunks {
        let entries = find_entry(key, chunk)?;
        match (entries.as_ref().and_then(EntryReader::day), &mut sum) {
            (None, _) => {}
            (Some(day), None) => sum = Some(day.to_stored()),
            (Some(day), Some(sum)) => sum.merge(day)?,
        }
    }
    Ok(sum)
}

pub(super) fn corrupt(
    backend: &'static str,
    op: &'static str,
    day: Day,
    source: Damaged,
) -> PortError {
    let detail = format!("counts of day {} are damaged", day.number());
    PortError::new(ErrorKind::Corrupt, backend, op, detail).with_source(source)
}
