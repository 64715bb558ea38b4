//! Reads of what was counted: the days of a subject, which are neighbours in the index.

use curt_core::ports::{HourRange, Top};
use curt_core::{ClickSubject, Day, Dimension, PortResult, Rollup};
use tokio_postgres::Row;

use super::subject::{Subject, day_of, stored_day};
use crate::decode::corrupt;
use crate::engine::{Engine, Value, column};
use crate::failure::BACKEND;
use curt_adapter_kit::click_days::{Damaged, Ranking, Series, estimate};

/// Days from `$4` to `$5`, both included.
const COUNTS: &str = "SELECT day, counts FROM click_days \
     WHERE kind = $1 AND number = $2 AND name = $3 AND day BETWEEN $4 AND $5 ORDER BY day";
/// Days from `$4` to before `$5`.
const VISITORS: &str = "SELECT day, visitors FROM click_days \
     WHERE kind = $1 AND number = $2 AND name = $3 AND day >= $4 AND day < $5 ORDER BY day";

pub(super) async fn series(
    engine: &Engine,
    subject: &ClickSubject,
    dimension: Dimension,
    range: HourRange,
) -> PortResult<Vec<Rollup>> {
    const OP: &str = "read clicks by the hour";
    let rows = counts(engine, OP, subject, range).await?;
    // A busy subject has hundreds of thousands of counts in a season.
    curt_adapter_kit::off_runtime(BACKEND, OP, move || {
        let mut series = Series::new(dimension, range);
        each(OP, &rows, |day, counts| series.add(day, counts))?;
        Ok(series.finish())
    })
    .await
}

pub(super) async fn top(
    engine: &Engine,
    subject: &ClickSubject,
    dimension: Dimension,
    range: HourRange,
    limit: usize,
) -> PortResult<Top> {
    const OP: &str = "rank clicks";
    let rows = counts(engine, OP, subject, range).await?;
    curt_adapter_kit::off_runtime(BACKEND, OP, move || {
        let mut ranking = Ranking::new(dimension, range);
        each(OP, &rows, |day, counts| ranking.add(day, counts))?;
        Ok(ranking.finish(limit))
    })
    .await
}

pub(super) async fn visitors(
    engine: &Engine,
    subject: &ClickSubject,
    from: Day,
    before: Day,
) -> PortResult<Vec<(Day, u64)>> {
    const OP: &str = "count visitors";
    let rows = days(engine, OP, VISITORS, subject, from, before).await?;
    let mut counted = Vec::with_capacity(rows.len());
    each(OP, &rows, |day, visitors| {
        counted.extend(estimate(visitors)?.map(|count| (day, count)));
        Ok(())
    })?;
    Ok(counted)
}

/// The counts of each day that the range touches.
async fn counts(
    engine: &Engine,
    op: &'static str,
    subject: &ClickSubject,
    range: HourRange,
) -> PortResult<Vec<Row>> {
    if range.from >= range.before {
        return Ok(Vec::new());
    }
    let (first, last) = (Day::of(range.from), Day::of(range.before));
    days(engine, op, COUNTS, subject, first, last).await
}

async fn days(
    engine: &Engine,
    op: &'static str,
    sql: &str,
    subject: &ClickSubject,
    first: Day,
    last: Day,
) -> PortResult<Vec<Row>> {
    let Subject { kind, number, name } = subject.into();
    let (first, last) = (stored_day(first), stored_day(last));
    let values: [Value<'_>; 5] = [&kind, &number, &name, &first, &last];
    engine.read(op, sql, &values).await
}

fn each(
    op: &'static str,
    rows: &[Row],
    mut see: impl FnMut(Day, &[u8]) -> Result<(), Damaged>,
) -> PortResult<()> {
    for row in rows {
        let day = day_of(op, row, 0)?;
        see(day, column(op, row, 1)?)
            .map_err(|damaged| corrupt(op, ("day", day.number())).with_source(damaged))?;
    }
    Ok(())
}
