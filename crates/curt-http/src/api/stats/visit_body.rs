//! Visits as JSON and as lines of CSV.

use curt_core::{VisitRow, Visited};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::KindName;
use crate::api::time::Rfc3339;

/// What a visit met.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = VisitMet)]
pub(crate) enum MetName {
    Link,
    NotFound,
    BaseUrl,
}

impl MetName {
    fn as_str(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::NotFound => "not_found",
            Self::BaseUrl => "base_url",
        }
    }
}

/// One visit. What its visitor sent is text, whatever it looks like.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Visit)]
pub(crate) struct VisitBody {
    at: Rfc3339,
    met: MetName,
    /// The key that was asked for; `null` for the base URL.
    #[schema(required = true, example = "spring-sale")]
    key: Option<String>,
    kind: KindName,
    /// Two letters, or `unknown`.
    #[schema(example = "DE")]
    country: String,
    #[schema(example = "Firefox")]
    browser: String,
    #[schema(example = "Linux")]
    system: String,
    #[schema(example = "desktop")]
    device: String,
    /// The host of the page that led here.
    #[schema(example = "news.example")]
    referrer: String,
    #[schema(example = "de")]
    language: String,
    /// Only where the server keeps addresses, which it does not unless told to.
    #[schema(required = true)]
    address: Option<String>,
}

impl From<VisitRow> for VisitBody {
    fn from(visit: VisitRow) -> Self {
        let (met, key) = match visit.visited {
            Visited::Link(id, _) => (MetName::Link, Some(id.key.to_string())),
            Visited::Absent(key) => (MetName::NotFound, Some(key.into())),
            Visited::BaseUrl => (MetName::BaseUrl, None),
        };
        Self {
            at: Rfc3339(visit.at),
            met,
            key,
            kind: visit.kind.into(),
            country: visit.country.into(),
            browser: visit.browser.into(),
            system: visit.system.into(),
            device: visit.device.into(),
            referrer: visit.referrer.into(),
            language: visit.language.into(),
            address: visit.address.map(|address| address.to_string()),
        }
    }
}

impl VisitBody {
    /// The columns of [`cells`](Self::cells).
    pub(super) const COLUMNS: [&str; 11] = [
        "at", "met", "key", "kind", "country", "browser", "system", "device", "referrer",
        "language", "address",
    ];

    pub(super) fn cells(self) -> [String; 11] {
        [
            self.at.to_string(),
            self.met.as_str().to_owned(),
            self.key.unwrap_or_default(),
            self.kind.as_str().to_owned(),
            self.country,
            self.browser,
            self.system,
            self.device,
            self.referrer,
            self.language,
            self.address.unwrap_or_default(),
        ]
    }
}

/// One page of visits.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = VisitPage)]
pub(crate) struct VisitsBody {
    /// Newest first. A page may be short and still have a next one.
    pub(super) visits: Vec<VisitBody>,
    /// Where the next page starts; `null` on the last one.
    #[schema(required = true)]
    pub(super) next: Option<String>,
}
