//! Days, weeks and months of a time zone, put together from hours of UTC.
//!
//! Clicks are counted by the hours of UTC. Most zones are whole hours away from it, and their days are exact, those with
//! a change of the clocks too: they have 23 or 25 hours. In the others (India, Nepal, parts of Australia) a day begins
//! inside an hour, and that hour counts for the day that has the greater part of it, or for the later one of equals.

use std::time::Duration;

use curt_core::UnixMillis;
use curt_core::limits::REPORT_POINTS_MAX;
use jiff::civil::{Date, ISOWeekDate, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::range::{Range, ReportRangeError};
use super::series::Point;

const HALF_AN_HOUR: Duration = Duration::from_secs(1_800);

/// How long one point of a series is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportPeriod {
    Hour,
    Day,
    /// From Monday to Sunday, numbered as ISO 8601 does.
    Week,
    Month,
}

impl ReportPeriod {
    pub const ALL: [Self; 4] = [Self::Hour, Self::Day, Self::Week, Self::Month];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bucket| bucket.name() == name)
    }
}

/// A time zone with its history of clock changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    pub const UTC: Self = Self(TimeZone::UTC);

    /// The zone with this name in the IANA database, as in `Europe/Berlin`. The system's database is asked first, then
    /// the one that was built in.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        TimeZone::get(name).ok().map(Self)
    }

    /// Its name; the spelling of the database, not of whoever asked.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// The first instant of a day. Where the clocks leave out midnight, that is later.
    pub(super) fn start_of(&self, date: Date) -> Result<UnixMillis, ReportRangeError> {
        let start = date.to_zoned(self.0.clone());
        let start = start.map_err(|_| ReportRangeError::Calendar)?;
        Ok(UnixMillis(start.timestamp().as_millisecond()))
    }

    /// The day that an instant lies in.
    pub fn date_of(&self, at: UnixMillis) -> Result<Date, ReportRangeError> {
        let at = Timestamp::from_millisecond(at.0).map_err(|_| ReportRangeError::Calendar)?;
        Ok(self.0.to_datetime(at).date())
    }

    /// As in `2026-10-25T02:00+02:00`: around a change of the clocks the offset tells two hours apart.
    fn label_of_hour(&self, at: UnixMillis) -> Result<Box<str>, ReportRangeError> {
        let at = Timestamp::from_millisecond(at.0).map_err(|_| ReportRangeError::Calendar)?;
        let local = at.to_zoned(self.0.clone());
        Ok(local.strftime("%Y-%m-%dT%H:%M%:z").to_string().into())
    }
}

/// The first hour that lies in a bucket which begins at the instant.
pub(super) fn nearest_hour(at: UnixMillis) -> UnixMillis {
    let hour = at.hour();
    if at.since(hour) > HALF_AN_HOUR {
        hour.plus(HALF_AN_HOUR * 2)
    } else {
        hour
    }
}

/// The buckets that a range touches.
pub(super) struct Calendar {
    /// Start and label of each, rising.
    buckets: Vec<(UnixMillis, Box<str>)>,
}

impl Calendar {
    pub(super) fn new(
        range: &Range,
        zone: &Zone,
        bucket: ReportPeriod,
    ) -> Result<Self, ReportRangeError> {
        let mut buckets = Vec::new();
        let mut push = |start, label: Box<str>| {
            if buckets.len() == REPORT_POINTS_MAX {
                return Err(ReportRangeError::TooManyPoints(REPORT_POINTS_MAX));
            }
            // A date that a zone left out altogether begins when the next one does: it has no hours.
            buckets.pop_if(|(before, _)| *before == start);
            buckets.push((start, label));
            Ok(())
        };
        if bucket == ReportPeriod::Hour {
            let mut hour = range.from();
            while hour < range.before() {
                push(hour, zone.label_of_hour(hour)?)?;
                hour = hour.plus(HALF_AN_HOUR * 2);
            }
            return Ok(Self { buckets });
        }
        let mut date = first_day(zone.date_of(range.from().plus(HALF_AN_HOUR))?, bucket)?;
        loop {
            let start = nearest_hour(zone.start_of(date)?);
            if start >= range.before() {
                return Ok(Self { buckets });
            }
            push(start, label(date, bucket))?;
            date = next(date, bucket).map_err(|_| ReportRangeError::Calendar)?;
        }
    }

    /// One empty point per bucket.
    pub(super) fn points(self) -> Vec<Point> {
        let points = self.buckets.into_iter();
        points
            .map(|(start, label)| Point::empty(start, label))
            .collect()
    }
}

fn first_day(date: Date, bucket: ReportPeriod) -> Result<Date, ReportRangeError> {
    match bucket {
        ReportPeriod::Hour | ReportPeriod::Day => Ok(date),
        ReportPeriod::Week => {
            let back = i64::from(date.weekday().to_monday_zero_offset());
            date.checked_sub(back.days())
                .map_err(|_| ReportRangeError::Calendar)
        }
        ReportPeriod::Month => Ok(date.first_of_month()),
    }
}

fn next(date: Date, bucket: ReportPeriod) -> Result<Date, jiff::Error> {
    match bucket {
        ReportPeriod::Hour | ReportPeriod::Day => date.tomorrow(),
        ReportPeriod::Week => date.checked_add(1.week()),
        ReportPeriod::Month => date.checked_add(1.month()),
    }
}

fn label(date: Date, bucket: ReportPeriod) -> Box<str> {
    match bucket {
        ReportPeriod::Hour | ReportPeriod::Day => date.to_string(),
        ReportPeriod::Week => {
            let week: ISOWeekDate = date.iso_week_date();
            debug_assert_eq!(week.weekday(), Weekday::Monday);
            format!("{:04}-W{:02}", week.year(), week.week())
        }
        ReportPeriod::Month => format!("{:04}-{:02}", date.year(), date.month()),
    }
    .into()
}
