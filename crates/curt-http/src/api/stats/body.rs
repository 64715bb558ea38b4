//! Reports as JSON.

use std::time::Duration;

use curt_clicks::report::{Counts, Point, RankingReport, ReportPeriod, Summary};
use curt_core::{ClickClass, Dimension};
use serde::Serialize;
use utoipa::ToSchema;

use super::query::{SeriesQuery, TopQuery};
use crate::api::time::Rfc3339;

/// How long one point of a series is.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ReportPeriod)]
pub(crate) enum BucketName {
    Hour,
    Day,
    Week,
    Month,
}

impl From<ReportPeriod> for BucketName {
    fn from(bucket: ReportPeriod) -> Self {
        match bucket {
            ReportPeriod::Hour => Self::Hour,
            ReportPeriod::Day => Self::Day,
            ReportPeriod::Week => Self::Week,
            ReportPeriod::Month => Self::Month,
        }
    }
}

/// What a click is taken for: a person, a program, a browser that fetches ahead, or a request for the headers alone.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ClickClass)]
pub(crate) enum ClassName {
    Human,
    Bot,
    Prefetch,
    Head,
}

impl ClassName {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Bot => "bot",
            Self::Prefetch => "prefetch",
            Self::Head => "head",
        }
    }
}

impl From<ClickClass> for ClassName {
    fn from(class: ClickClass) -> Self {
        match class {
            ClickClass::Human => Self::Human,
            ClickClass::Bot => Self::Bot,
            ClickClass::Prefetch => Self::Prefetch,
            ClickClass::Head => Self::Head,
        }
    }
}

/// By what clicks are counted apart. `class` counts all clicks; `orphan` and `key` those that met no link; the others
/// humans only. `referrer_group` is `direct`, `search`, `social`, `mail` or `other`. The `utm_` parameters are those of the
/// address that visitors are sent to. `city` and `network` need files of the operator's; clicks without a value are not
/// counted in these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Dimension)]
pub(crate) enum DimensionName {
    Class,
    Country,
    Browser,
    System,
    Device,
    Referrer,
    Language,
    Orphan,
    Key,
    ReferrerGroup,
    UtmSource,
    UtmMedium,
    UtmCampaign,
    UtmTerm,
    UtmContent,
    City,
    Network,
}

impl DimensionName {
    pub(super) const OF_LINKS: [Self; 15] = [
        Self::Class,
        Self::Country,
        Self::Browser,
        Self::System,
        Self::Device,
        Self::Referrer,
        Self::Language,
        Self::ReferrerGroup,
        Self::UtmSource,
        Self::UtmMedium,
        Self::UtmCampaign,
        Self::UtmTerm,
        Self::UtmContent,
        Self::City,
        Self::Network,
    ];
    pub(super) const OF_ORPHANS: [Self; 12] = [
        Self::Class,
        Self::Country,
        Self::Browser,
        Self::System,
        Self::Device,
        Self::Referrer,
        Self::Language,
        Self::Orphan,
        Self::Key,
        Self::ReferrerGroup,
        Self::City,
        Self::Network,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Country => "country",
            Self::Browser => "browser",
            Self::System => "system",
            Self::Device => "device",
            Self::Referrer => "referrer",
            Self::Language => "language",
            Self::Orphan => "orphan",
            Self::Key => "key",
            Self::ReferrerGroup => "referrer_group",
            Self::UtmSource => "utm_source",
            Self::UtmMedium => "utm_medium",
            Self::UtmCampaign => "utm_campaign",
            Self::UtmTerm => "utm_term",
            Self::UtmContent => "utm_content",
            Self::City => "city",
            Self::Network => "network",
        }
    }
}

impl From<Dimension> for DimensionName {
    fn from(dimension: Dimension) -> Self {
        match dimension {
            Dimension::Class => Self::Class,
            Dimension::Country => Self::Country,
            Dimension::Browser => Self::Browser,
            Dimension::System => Self::System,
            Dimension::Device => Self::Device,
            Dimension::Referrer => Self::Referrer,
            Dimension::Language => Self::Language,
            Dimension::Orphan => Self::Orphan,
            Dimension::Key => Self::Key,
            Dimension::ReferrerGroup => Self::ReferrerGroup,
            Dimension::UtmSource => Self::UtmSource,
            Dimension::UtmMedium => Self::UtmMedium,
            Dimension::UtmCampaign => Self::UtmCampaign,
            Dimension::UtmTerm => Self::UtmTerm,
            Dimension::UtmContent => Self::UtmContent,
            Dimension::City => Self::City,
            Dimension::Network => Self::Network,
        }
    }
}

/// How many clicks, in all and of each class.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ClickCounts)]
pub(crate) struct CountsBody {
    total: u64,
    human: u64,
    bot: u64,
    prefetch: u64,
    head: u64,
}

impl From<Counts> for CountsBody {
    fn from(counts: Counts) -> Self {
        Self {
            total: counts.total(),
            human: counts.human,
            bot: counts.bot,
            prefetch: counts.prefetch,
            head: counts.head,
        }
    }
}

/// One point of a series.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StatsPoint)]
pub(crate) struct PointBody {
    /// When it begins. Nothing from before the range is counted.
    pub(super) start: Rfc3339,
    /// The same in the time zone's calendar: `2026-11-15T14:00+01:00`, `2026-11-15`, `2026-W46` or `2026-11`.
    #[schema(example = "2026-11-15")]
    pub(super) label: String,
    pub(super) counts: CountsBody,
    /// About how many different people, of the UTC days that lie mostly in it. `null` for an hour: nobody is
    /// recognised by the hour.
    #[schema(required = true)]
    pub(super) visitors: Option<u64>,
}

impl PointBody {
    fn new(point: &Point) -> Self {
        Self {
            start: Rfc3339(point.start),
            label: point.label.to_string(),
            counts: point.counts.into(),
            visitors: point.visitors,
        }
    }

    /// The columns of [`cells`](Self::cells).
    pub(super) const COLUMNS: [&str; 8] = [
        "start", "label", "total", "human", "bot", "prefetch", "head", "visitors",
    ];

    pub(super) fn cells(&self) -> [String; 8] {
        let counts = &self.counts;
        [
            self.start.to_string(),
            self.label.clone(),
            counts.total.to_string(),
            counts.human.to_string(),
            counts.bot.to_string(),
            counts.prefetch.to_string(),
            counts.head.to_string(),
            self.visitors
                .map(|count| count.to_string())
                .unwrap_or_default(),
        ]
    }
}

/// What was counted over a range.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Stats)]
pub(crate) struct StatsBody {
    /// When the range begins.
    from: Rfc3339,
    /// The first instant after the range.
    to: Rfc3339,
    /// The time zone of the series.
    #[schema(example = "Europe/Berlin")]
    tz: String,
    bucket: BucketName,
    totals: CountsBody,
    /// About how many different people came: the sum over the range's days of UTC. Nobody is recognised on another day.
    visitors: u64,
    /// How many seconds ago a click may have been made that is not counted yet: 1, or more where the server is behind or
    /// other servers count into the same database.
    #[schema(example = 1)]
    lag_max_seconds: u64,
    /// Without gaps; the counts add up to the totals.
    pub(super) series: Vec<PointBody>,
}

impl StatsBody {
    pub(super) fn new(query: &SeriesQuery, summary: &Summary, lag_max: Duration) -> Self {
        Self {
            from: Rfc3339(query.range.from()),
            to: Rfc3339(query.range.before()),
            tz: query.zone.name().to_owned(),
            bucket: query.bucket.into(),
            totals: summary.totals.into(),
            visitors: summary.visitors,
            lag_max_seconds: seconds(lag_max),
            series: summary.points.iter().map(PointBody::new).collect(),
        }
    }
}

/// A value and how often it came.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ValueCount)]
pub(crate) struct ValueBody {
    /// As the visitor sent it, or as it was understood: treat it as text. `unknown` stands for nothing known, `other`
    /// for values beyond the 1,000 most frequent of a day. Where there are others, a count may lack a thousandth of the
    /// clicks of its day at most; it is never too high.
    #[schema(example = "DE")]
    value: String,
    count: u64,
}

/// The most frequent values of a dimension.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TopValues)]
pub(crate) struct TopBody {
    /// When the range begins.
    from: Rfc3339,
    /// The first instant after the range.
    to: Rfc3339,
    /// From here to the end of the range every click is counted. Later than `from` only with filters, if the range begins
    /// before the oldest click that is kept.
    complete_from: Rfc3339,
    dimension: DimensionName,
    /// The most frequent first.
    values: Vec<ValueBody>,
    /// The count of all values that are not listed.
    rest: u64,
    /// How many seconds ago a click may have been made that is not counted yet: 1, or more where the server is behind or
    /// other servers count into the same database.
    #[schema(example = 1)]
    lag_max_seconds: u64,
    /// The server's setting that names no file, or none with such values, so that nothing is known in this dimension; `null`
    /// where nothing is missing.
    #[schema(required = true, example = "clicks.networks")]
    missing_setting: Option<&'static str>,
}

impl TopBody {
    pub(super) fn new(
        query: &TopQuery,
        ranked: RankingReport,
        lag_max: Duration,
        missing_setting: Option<&'static str>,
    ) -> Self {
        let values = ranked.top.values.into_iter();
        Self {
            from: Rfc3339(query.range.from()),
            to: Rfc3339(query.range.before()),
            complete_from: Rfc3339(ranked.complete_from),
            dimension: query.dimension.into(),
            values: values
                .map(|(value, count)| ValueBody {
                    value: value.into(),
                    count,
                })
                .collect(),
            rest: ranked.top.rest,
            lag_max_seconds: seconds(lag_max),
            missing_setting,
        }
    }
}

/// Whole seconds, and none too few.
pub(super) fn seconds(duration: Duration) -> u64 {
    duration
        .as_millis()
        .div_ceil(1_000)
        .try_into()
        .unwrap_or(u64::MAX)
}
