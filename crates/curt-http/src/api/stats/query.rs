//! The queries of reports.

use std::time::Duration;

use curt_clicks::report::{Edge, Range, ReportPeriod, Zone};
use curt_core::limits::{
    LIVE_FEED_LASTS_MAX, PAGE_CLICKS_MAX, REPORT_POINTS_MAX, REPORT_VALUES_MAX, REPORT_YEARS_MAX,
};
use curt_core::ports::ClickFilter;
use curt_core::{ClickClass, Dimension, UnixMillis};
use url::form_urlencoded;
use utoipa::IntoParams;

use super::body::{BucketName, ClassName, DimensionName};
use super::filter::{filter, named_class};
use super::out_of_range;
use super::subject::Which;
use crate::api::query::{number, values};
use crate::api::time::{DateOrTime, Rfc3339, TimeError, parse_day};
use crate::problem::{Problem, ProblemCode};

const TOP_DEFAULT: usize = 10;
const CLICKS_DEFAULT: usize = 50;

// The parameters below can hold only literal numbers.
const _: () = assert!(REPORT_VALUES_MAX == 1_000 && PAGE_CLICKS_MAX == 1_000);
const _: () = assert!(REPORT_YEARS_MAX == 10 && REPORT_POINTS_MAX == 5_000);
const _: () = assert!(LIVE_FEED_LASTS_MAX.as_secs() == 3_600);

/// From when to when, as the OpenAPI document shows it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "only the documentation is generated from the fields"
)]
pub(crate) struct RangeParams {
    /// The first day, or an instant. Clicks are counted by the hour: a range has every hour that it touches. Without it
    /// the range has 30 days.
    #[param(inline, nullable = false, value_type = Option<DateOrTime>)]
    from: Option<DateOrTime>,
    /// The last day, or an instant; now unless said otherwise, with everything that is dated later because a clock was
    /// ahead. A range has at most 10 years.
    #[param(inline, nullable = false, value_type = Option<DateOrTime>)]
    to: Option<DateOrTime>,
    /// The time zone in which days begin, by its name in the IANA database; UTC unless said otherwise. Where it is not
    /// whole hours away from UTC, days begin at the nearest hour.
    #[param(nullable = false, max_length = 64, example = "Europe/Berlin")]
    tz: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "only the documentation is generated from the fields"
)]
pub(crate) struct SeriesParams {
    /// How long one point of the series is; `day` unless said otherwise. Weeks are those of ISO 8601. There are at most
    /// 5,000 points.
    #[param(inline, nullable = false)]
    bucket: Option<BucketName>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "only the documentation is generated from the fields"
)]
pub(crate) struct ClickParams {
    /// Only clicks of this class.
    #[param(inline, nullable = false)]
    class: Option<ClassName>,
    /// Only clicks from this country.
    #[param(nullable = false, example = "DE")]
    country: Option<String>,
    /// Only clicks with this browser.
    #[param(nullable = false, example = "Firefox")]
    browser: Option<String>,
    /// Only clicks from this operating system.
    #[param(nullable = false, example = "Linux")]
    system: Option<String>,
    /// Only clicks with this sort of device.
    #[param(nullable = false, example = "desktop")]
    device: Option<String>,
    /// Only clicks from pages of this host.
    #[param(nullable = false, example = "news.example")]
    referrer: Option<String>,
    /// Only clicks in this language.
    #[param(nullable = false, example = "de")]
    language: Option<String>,
    /// Only clicks that came this way: `direct`, `search`, `social`, `mail` or `other`.
    #[param(nullable = false, example = "search")]
    referrer_group: Option<String>,
    /// Only clicks that were sent to an address with this `utm_source`.
    #[param(nullable = false, example = "newsletter")]
    utm_source: Option<String>,
    /// Only clicks that were sent to an address with this `utm_medium`.
    #[param(nullable = false, example = "email")]
    utm_medium: Option<String>,
    /// Only clicks that were sent to an address with this `utm_campaign`.
    #[param(nullable = false, example = "spring")]
    utm_campaign: Option<String>,
    /// Only clicks that were sent to an address with this `utm_term`.
    #[param(nullable = false, example = "shoes")]
    utm_term: Option<String>,
    /// Only clicks that were sent to an address with this `utm_content`.
    #[param(nullable = false, example = "top-banner")]
    utm_content: Option<String>,
    /// Only clicks from this city.
    #[param(nullable = false, example = "Paris, FR")]
    city: Option<String>,
    /// Only clicks from networks of this organisation.
    #[param(nullable = false, example = "Example Telecom")]
    network: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "only the documentation is generated from the fields"
)]
pub(crate) struct PageParams {
    /// How many clicks a page has at most; 50 unless said otherwise.
    #[param(nullable = false, minimum = 1, maximum = 1_000, example = 50)]
    limit: Option<u16>,
    /// The `next` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "only the documentation is generated from the fields"
)]
pub(crate) struct LiveParams {
    /// Only clicks of this class; `all` unless said otherwise.
    #[param(
        nullable = false,
        pattern = "^(all|human|bot|prefetch|head)$",
        example = "human"
    )]
    class: Option<String>,
    /// After how many seconds the feed ends; an hour unless said otherwise.
    #[param(nullable = false, minimum = 0, maximum = 3_600, example = 60)]
    seconds: Option<u16>,
}

#[derive(Debug)]
pub(super) struct SeriesQuery {
    pub(super) range: Range,
    pub(super) zone: Zone,
    pub(super) bucket: ReportPeriod,
}

#[derive(Clone, Debug)]
pub(super) struct TopQuery {
    pub(super) range: Range,
    pub(super) dimension: Dimension,
    pub(super) filter: ClickFilter,
    pub(super) limit: usize,
}

#[derive(Debug)]
pub(super) struct ClicksQuery {
    pub(super) range: Range,
    pub(super) filter: ClickFilter,
    pub(super) limit: usize,
    pub(super) cursor: Option<Box<str>>,
}

#[derive(Debug)]
pub(super) struct LiveQuery {
    /// `None`: all.
    pub(super) class: Option<ClickClass>,
    pub(super) lasts: Duration,
}

/// Totals and series. `tag` and `owner_id` are read too and refused by the caller where they mean nothing.
pub(super) fn series(text: &str, now: UnixMillis) -> Result<(SeriesQuery, Which), Problem> {
    let names = ["from", "to", "tz", "bucket", "tag", "owner_id"];
    let [from, to, tz, bucket, tag, owner] = values(text, names)?;
    let (range, zone) = range(from.as_deref(), to.as_deref(), tz.as_deref(), now)?;
    let bucket = match bucket.as_deref() {
        None => ReportPeriod::Day,
        Some(name) => ReportPeriod::named(name).ok_or_else(|| {
            Problem::invalid_field("bucket", "value", "Must be hour, day, week or month.")
        })?,
    };
    let query = SeriesQuery {
        range,
        zone,
        bucket,
    };
    Ok((query, Which { tag, owner }))
}

pub(super) fn top(
    text: &str,
    dimension: Dimension,
    now: UnixMillis,
) -> Result<(TopQuery, Which), Problem> {
    let names = [
        "from",
        "to",
        "tz",
        "limit",
        "tag",
        "owner_id",
        "class",
        "country",
        "browser",
        "system",
        "device",
        "referrer",
        "language",
        "referrer_group",
        "utm_source",
        "utm_medium",
        "utm_campaign",
        "utm_term",
        "utm_content",
        "city",
        "network",
    ];
    let [from, to, tz, limit, tag, owner, filters @ ..] = values(text, names)?;
    let (range, _) = range(from.as_deref(), to.as_deref(), tz.as_deref(), now)?;
    let query = TopQuery {
        range,
        dimension,
        filter: filter(filters)?,
        limit: bounded(limit.as_deref(), TOP_DEFAULT, REPORT_VALUES_MAX)?,
    };
    Ok((query, Which { tag, owner }))
}

pub(super) fn clicks(text: &str, now: UnixMillis) -> Result<(ClicksQuery, Which), Problem> {
    let names = [
        "from",
        "to",
        "tz",
        "limit",
        "cursor",
        "tag",
        "owner_id",
        "class",
        "country",
        "browser",
        "system",
        "device",
        "referrer",
        "language",
        "referrer_group",
        "utm_source",
        "utm_medium",
        "utm_campaign",
        "utm_term",
        "utm_content",
        "city",
        "network",
    ];
    let [from, to, tz, limit, cursor, tag, owner, filters @ ..] = values(text, names)?;
    let (range, _) = range(from.as_deref(), to.as_deref(), tz.as_deref(), now)?;
    let query = ClicksQuery {
        range,
        filter: filter(filters)?,
        limit: bounded(limit.as_deref(), CLICKS_DEFAULT, PAGE_CLICKS_MAX)?,
        cursor: cursor.map(Into::into),
    };
    Ok((query, Which { tag, owner }))
}

/// For all clicks of a range: pages do not exist.
pub(super) fn clicks_for_file(
    text: &str,
    now: UnixMillis,
) -> Result<(ClicksQuery, Which), Problem> {
    for (name, _) in form_urlencoded::parse(text.as_bytes()) {
        if name == "limit" || name == "cursor" {
            let message = "There is no such parameter.";
            return Err(Problem::invalid_field(
                name.into_owned(),
                "unknown",
                message,
            ));
        }
    }
    clicks(text, now)
}

pub(super) fn live(text: &str) -> Result<(LiveQuery, Which), Problem> {
    let [class, seconds, tag, owner] = values(text, ["class", "seconds", "tag", "owner_id"])?;
    let class = class.filter(|class| class != "all");
    let lasts = match seconds {
        None => LIVE_FEED_LASTS_MAX,
        Some(seconds) => number(&seconds)
            .map(Duration::from_secs)
            .filter(|lasts| *lasts <= LIVE_FEED_LASTS_MAX)
            .ok_or_else(|| {
                let max = LIVE_FEED_LASTS_MAX.as_secs();
                let message = format!("Must be a number from 0 to {max}.");
                Problem::invalid_field("seconds", "value", message)
            })?,
    };
    let query = LiveQuery {
        class: class.as_deref().map(named_class).transpose()?,
        lasts,
    };
    Ok((query, Which { tag, owner }))
}

/// The dimension that a path names.
pub(super) fn dimension(name: &str, known: &[DimensionName]) -> Result<Dimension, Problem> {
    let dimension = Dimension::named(name);
    dimension
        .filter(|dimension| known.contains(&DimensionName::from(*dimension)))
        .ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|name| name.as_str()).collect();
            let detail = format!("Clicks are counted by {}.", names.join(", "));
            Problem::new(ProblemCode::NotFound).detail(detail)
        })
}

fn range(
    from: Option<&str>,
    to: Option<&str>,
    tz: Option<&str>,
    now: UnixMillis,
) -> Result<(Range, Zone), Problem> {
    let zone = match tz {
        None => Zone::UTC,
        Some(name) => Zone::named(name).ok_or_else(|| {
            let message = "There is no time zone of this name in the IANA database.";
            Problem::invalid_field("tz", "value", message)
        })?,
    };
    let from = from.map(|from| edge("from", from)).transpose()?;
    let to = to.map(|to| edge("to", to)).transpose()?;
    let range = Range::asked(from, to, now, &zone).map_err(out_of_range)?;
    Ok((range, zone))
}

fn edge(field: &'static str, value: &str) -> Result<Edge, Problem> {
    let edge = match parse_day(value) {
        Err(TimeError::Syntax) => Rfc3339::parse(value).map(|at| Edge::At(at.0)),
        day => day.map(Edge::Day),
    };
    edge.map_err(|error| match error {
        TimeError::Syntax => {
            let message = "Write a day as in 2030-12-31, or an instant as in 2030-12-31T23:59:59Z.";
            Problem::invalid_field(field, "time", message)
        }
        TimeError::Calendar => Problem::invalid_field(field, "time", error.to_string()),
    })
}

fn bounded(value: Option<&str>, usual: usize, max: usize) -> Result<usize, Problem> {
    let Some(value) = value else {
        return Ok(usual);
    };
    let limit = number(value).and_then(|limit| usize::try_from(limit).ok());
    limit
        .filter(|limit| (1..=max).contains(limit))
        .ok_or_else(|| {
            let message = format!("Must be a number from 1 to {max}.");
            Problem::invalid_field("limit", "value", message)
        })
}
