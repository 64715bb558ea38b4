//! From when to when.

use std::time::Duration;

use curt_core::UnixMillis;
use curt_core::limits::REPORT_YEARS_MAX;
use curt_core::ports::HourRange;
use jiff::ToSpan;
use jiff::civil::Date;

use super::calendar::{Zone, nearest_hour};

const HOUR: Duration = Duration::from_secs(3_600);

const RANGE_MAX: Duration = Duration::from_secs(REPORT_YEARS_MAX * 366 * 24 * 3_600);

/// Days of a range that was not said to be any other.
pub const USUAL_DAYS: i64 = 30;

/// Where a range begins or ends, as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The hour that the instant lies in belongs to the range.
    At(UnixMillis),
    /// The whole day belongs to the range.
    Day(Date),
}

/// Whole hours, since that is how clicks are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    from: UnixMillis,
    before: UnixMillis,
    /// Whether it was not said when it ends: then clicks that are dated later are counted too, which there are after a
    /// clock stepped back.
    is_open: bool,
}

/// Why there is no report on a range. The words are for whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportRangeError {
    #[error("The range must end after it begins.")]
    Empty,
    #[error("A report covers at most {REPORT_YEARS_MAX} years.")]
    TooLong,
    #[error(
        "The series would have more than {0} points: ask for longer ones, or for a shorter range."
    )]
    TooManyPoints(usize),
    #[error("There is no such time.")]
    Calendar,
}

impl Range {
    /// From one edge to the other. A range of instants covers every hour that it touches. A day of a zone that is not
    /// whole hours away from UTC begins at the nearest hour.
    pub fn new(from: Edge, to: Edge, zone: &Zone) -> Result<Self, ReportRangeError> {
        let from = match from {
            Edge::At(at) => at.hour(),
            Edge::Day(date) => nearest_hour(zone.start_of(date)?),
        };
        let before = match to {
            Edge::At(at) => hour_after(at),
            Edge::Day(date) => {
                let next = date.tomorrow().map_err(|_| ReportRangeError::Calendar)?;
                nearest_hour(zone.start_of(next)?)
            }
        };
        Zone::UTC.date_of(from)?;
        Zone::UTC.date_of(before)?;
        Self::of_hours(from, before)
    }

    /// The range as it was asked for. Without an end it ends with the hour that has begun, and whatever is dated later
    /// counts as of that hour; without a beginning it has the [`USUAL_DAYS`] days of the zone's calendar up to its end.
    pub fn asked(
        from: Option<Edge>,
        to: Option<Edge>,
        now: UnixMillis,
        zone: &Zone,
    ) -> Result<Self, ReportRangeError> {
        let is_open = to.is_none();
        let to = to.unwrap_or(Edge::At(now.hour().plus(HOUR)));
        let from = from.map_or_else(|| usual_start(to, zone), Ok)?;
        let range = Self::new(from, to, zone)?;
        Ok(Self { is_open, ..range })
    }

    fn of_hours(from: UnixMillis, before: UnixMillis) -> Result<Self, ReportRangeError> {
        if before <= from {
            return Err(ReportRangeError::Empty);
        }
        if before.since(from) > RANGE_MAX {
            return Err(ReportRangeError::TooLong);
        }
        Ok(Self {
            from,
            before,
            is_open: false,
        })
    }

    #[must_use]
    pub fn from(&self) -> UnixMillis {
        self.from
    }

    /// The first instant after the range.
    #[must_use]
    pub fn before(&self) -> UnixMillis {
        self.before
    }

    /// The first instant whose clicks are not counted any more.
    #[must_use]
    pub fn counted_before(&self) -> UnixMillis {
        match self.is_open {
            true => UnixMillis(i64::MAX),
            false => self.before,
        }
    }

    pub(super) fn counted(&self) -> HourRange {
        HourRange {
            from: self.from,
            before: self.counted_before(),
        }
    }
}

fn usual_start(end: Edge, zone: &Zone) -> Result<Edge, ReportRangeError> {
    let last = match end {
        Edge::Day(date) => date,
        Edge::At(at) => zone.date_of(at.minus(Duration::from_millis(1)))?,
    };
    let first = last.checked_sub((USUAL_DAYS - 1).days());
    first.map(Edge::Day).map_err(|_| ReportRangeError::Calendar)
}

/// The first whole hour that is not before the instant.
fn hour_after(at: UnixMillis) -> UnixMillis {
    if at == at.hour() {
        at
    } else {
        at.hour().plus(HOUR)
    }
}
