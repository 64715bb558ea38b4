//! Which time a report is about.

use std::time::Duration;

use curt_clicks::report::{
    Edge, Range, ReportError, ReportPeriod, ReportRangeError, Reports, Summary, Zone,
};
use curt_core::ports::Top;
use curt_core::{ClickSubject, Dimension, UnixMillis};
use jiff::ToSpan;
use url::form_urlencoded;

use crate::api::time::{Rfc3339, parse_day};
use crate::pages::form::Form;

const DAY: Duration = Duration::from_secs(24 * 3_600);
const ZONE_CHARS_MAX: usize = 64;

/// Zones that are offered; any other of the IANA database can be typed.
const ZONES: [&str; 24] = [
    "UTC",
    "America/Los_Angeles",
    "America/Denver",
    "America/Chicago",
    "America/New_York",
    "America/Sao_Paulo",
    "Atlantic/Reykjavik",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Paris",
    "Europe/Madrid",
    "Europe/Athens",
    "Europe/Kyiv",
    "Europe/Istanbul",
    "Africa/Cairo",
    "Africa/Lagos",
    "Africa/Nairobi",
    "Asia/Dubai",
    "Asia/Kolkata",
    "Asia/Singapore",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Australia/Sydney",
    "Pacific/Auckland",
];

/// A span of time that can be chosen by one click.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pages) enum RangeChoice {
    Day,
    Week,
    Month,
    Quarter,
    Year,
    /// From one day to another.
    Own,
}

impl RangeChoice {
    const OFFERED: [Self; 5] = [
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Quarter,
        Self::Year,
    ];

    pub(in crate::pages) fn name(self) -> &'static str {
        match self {
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
            Self::Quarter => "90d",
            Self::Year => "1y",
            Self::Own => "own",
        }
    }

    pub(in crate::pages) fn label(self) -> &'static str {
        match self {
            Self::Day => "24 hours",
            Self::Week => "7 days",
            Self::Month => "30 days",
            Self::Quarter => "90 days",
            Self::Year => "1 year",
            Self::Own => "Other",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::OFFERED
            .into_iter()
            .find(|choice| choice.name() == name)
    }

    fn days(self) -> i64 {
        match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month | Self::Own => 30,
            Self::Quarter => 90,
            Self::Year => 365,
        }
    }
}

/// What was asked for, and is shown again.
#[derive(Clone)]
pub(in crate::pages) struct AskedReport {
    pub(super) range: Range,
    pub(super) zone: Zone,
    pub(super) bucket: ReportPeriod,
    pub(in crate::pages) choice: RangeChoice,
    pub(in crate::pages) from: String,
    pub(in crate::pages) to: String,
    /// Whether a zone was named.
    pub(in crate::pages) has_zone: bool,
    /// What could not be read; the report is on the usual time then.
    pub(in crate::pages) mistake: Option<String>,
}

impl AskedReport {
    /// Reads the query of a page. What is wrong does not keep the page from being shown.
    pub(in crate::pages) fn parse(query: &Form, now: UnixMillis) -> Result<Self, ReportRangeError> {
        let mut mistake = None;
        let name: String = query.text("tz").chars().take(ZONE_CHARS_MAX).collect();
        let zone = match name.as_str() {
            "" => Zone::UTC,
            name => Zone::named(name).unwrap_or_else(|| {
                mistake =
                    Some("There is no such time zone. Write it as in Europe/Berlin.".to_owned());
                Zone::UTC
            }),
        };
        let asked = Self {
            range: Range::asked(None, None, now, &zone)?,
            bucket: ReportPeriod::Day,
            choice: RangeChoice::Month,
            from: query.text("from"),
            to: query.text("to"),
            has_zone: !name.is_empty(),
            zone,
            mistake,
        };
        if !asked.from.is_empty() || !asked.to.is_empty() {
            return Ok(asked.of_days(now));
        }
        let choice = RangeChoice::named(&query.text("range")).unwrap_or(RangeChoice::Month);
        asked.of_choice(choice, now)
    }

    /// The last 24 hours.
    pub(in crate::pages) fn last_day(now: UnixMillis) -> Result<Self, ReportRangeError> {
        Self::parse(&Form::parse(b"range=24h"), now)
    }

    fn of_choice(self, choice: RangeChoice, now: UnixMillis) -> Result<Self, ReportRangeError> {
        let (from, bucket) = match choice {
            RangeChoice::Day => {
                let first = now.minus(DAY).plus(Duration::from_secs(3_600));
                (Edge::At(first), ReportPeriod::Hour)
            }
            other => {
                let today = self.zone.date_of(now)?;
                let first = today.checked_sub((other.days() - 1).days());
                let first = first.map_err(|_| ReportRangeError::Calendar)?;
                let bucket = match other {
                    RangeChoice::Year => ReportPeriod::Week,
                    _ => ReportPeriod::Day,
                };
                (Edge::Day(first), bucket)
            }
        };
        let range = Range::asked(Some(from), None, now, &self.zone)?;
        Ok(Self {
            range,
            bucket,
            choice,
            ..self
        })
    }

    /// From one day to another, in the zone; either may be left out.
    fn of_days(self, now: UnixMillis) -> Self {
        let edge = |text: &str| match text {
            "" => Ok(None),
            text => parse_day(text).map(|day| Some(Edge::Day(day))),
        };
        let edges = edge(&self.from).and_then(|from| Ok((from, edge(&self.to)?)));
        let range = match edges {
            Ok((from, to)) => {
                Range::asked(from, to, now, &self.zone).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        match range {
            Ok(range) => Self {
                bucket: bucket_of(&range),
                range,
                choice: RangeChoice::Own,
                ..self
            },
            Err(mistake) => Self {
                mistake: Some(mistake),
                ..self
            },
        }
    }

    pub(in crate::pages) fn bucket(&self) -> ReportPeriod {
        self.bucket
    }

    /// The totals, the series and the most frequent values of the time that was asked for.
    pub(in crate::pages) async fn summary_and_tops(
        &self,
        reports: &Reports,
        subject: &ClickSubject,
        dimensions: &[(Dimension, usize)],
    ) -> Result<(Summary, Vec<Top>), ReportError> {
        reports
            .summary_and_tops(subject, &self.range, &self.zone, self.bucket, dimensions)
            .await
    }

    pub(in crate::pages) fn zone_name(&self) -> &str {
        self.zone.name()
    }

    /// The spans to choose from, with the query of each.
    pub(in crate::pages) fn choices(&self) -> impl Iterator<Item = (RangeChoice, String)> {
        RangeChoice::OFFERED
            .into_iter()
            .map(|choice| (choice, self.query_of(choice)))
    }

    /// The zones that are offered.
    pub(in crate::pages) fn zones(&self) -> &'static [&'static str] {
        &ZONES
    }

    /// The same time, as the API is asked for it.
    pub(super) fn api_query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("from", &Rfc3339(self.range.from()).to_string());
        query.append_pair("to", &Rfc3339(self.range.before()).to_string());
        query.append_pair("tz", self.zone.name());
        query.finish()
    }

    fn query_of(&self, choice: RangeChoice) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("range", choice.name());
        if self.has_zone {
            query.append_pair("tz", self.zone.name());
        }
        query.finish()
    }
}

/// So long that a chart has about a hundred columns at most.
fn bucket_of(range: &Range) -> ReportPeriod {
    match range.before().since(range.from()) {
        length if length <= DAY * 4 => ReportPeriod::Hour,
        length if length <= DAY * 120 => ReportPeriod::Day,
        length if length <= DAY * 800 => ReportPeriod::Week,
        _ => ReportPeriod::Month,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01T00:00:00Z.
    const NOW: UnixMillis = UnixMillis(1_767_225_600_000);

    fn asked(query: &str) -> AskedReport {
        AskedReport::parse(&Form::parse(query.as_bytes()), NOW).unwrap()
    }

    #[test]
    fn spans_end_now_and_have_so_many_days() {
        for (query, days, bucket) in [
            ("", 30, ReportPeriod::Day),
            ("range=24h", 1, ReportPeriod::Hour),
            ("range=7d", 7, ReportPeriod::Day),
            ("range=1y", 365, ReportPeriod::Week),
            ("range=nonsense", 30, ReportPeriod::Day),
        ] {
            let report = asked(query);
            let length = report.range.before().since(report.range.from());
            assert!(length <= DAY * days && length > DAY * (days - 1), "{query}");
            assert_eq!(report.bucket, bucket, "{query}");
            assert_eq!(report.mistake, None);
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_and_the_usual_time_is_shown() {
        for query in [
            "tz=Mars/Base",
            "from=tomorrow",
            "from=2026-02-31",
            "from=2026-01-02&to=2026-01-01",
            "from=1800-01-01&to=2026-01-01",
        ] {
            assert!(asked(query).mistake.is_some(), "{query}");
        }
        let own = asked("from=2025-12-01&to=2025-12-02&tz=Europe/Berlin");
        assert_eq!((own.mistake.clone(), own.choice), (None, RangeChoice::Own));
        assert_eq!(own.bucket, ReportPeriod::Hour);
        let (_, query) = own.choices().next().unwrap();
        assert_eq!(query, "range=24h&tz=Europe%2FBerlin");
    }
}
