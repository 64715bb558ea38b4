//! Clicks as JSON and as lines of CSV.

use curt_core::{Click, ClickOutcome, Dimension};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::ClassName;
use crate::api::time::Rfc3339;

/// What a click met.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ClickOutcome)]
pub(crate) enum OutcomeName {
    Link,
    NotFound,
    BaseUrl,
}

impl OutcomeName {
    fn as_str(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::NotFound => "not_found",
            Self::BaseUrl => "base_url",
        }
    }
}

/// One click. What its visitor sent is text, whatever it looks like.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Click)]
pub(crate) struct ClickBody {
    at: Rfc3339,
    outcome: OutcomeName,
    /// The key that was asked for; `null` for the base URL.
    #[schema(required = true, example = "spring-sale")]
    key: Option<String>,
    class: ClassName,
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
    /// How the visitor came: `direct`, `search`, `social`, `mail` or `other`.
    #[schema(required = true, example = "search")]
    referrer_group: Option<String>,
    /// Of the address that the visitor was sent to, as all `utm_` parameters.
    #[schema(required = true, example = "newsletter")]
    utm_source: Option<String>,
    #[schema(required = true)]
    utm_medium: Option<String>,
    #[schema(required = true)]
    utm_campaign: Option<String>,
    #[schema(required = true)]
    utm_term: Option<String>,
    #[schema(required = true)]
    utm_content: Option<String>,
    /// Only where the server has a list of cities.
    #[schema(required = true, example = "Paris, FR")]
    city: Option<String>,
    /// Only where the server has a list of networks.
    #[schema(required = true, example = "Example Telecom")]
    network: Option<String>,
    /// Only where the server keeps addresses, which it does not unless told to.
    #[schema(required = true)]
    address: Option<String>,
}

impl From<Click> for ClickBody {
    fn from(click: Click) -> Self {
        let (outcome, key) = match click.outcome {
            ClickOutcome::Link(id, _) => (OutcomeName::Link, Some(id.key.to_string())),
            ClickOutcome::Absent(key) => (OutcomeName::NotFound, Some(key.into())),
            ClickOutcome::BaseUrl => (OutcomeName::BaseUrl, None),
        };
        let detail = |dimension| click.details.get(dimension).map(str::to_owned);
        Self {
            at: Rfc3339(click.at),
            outcome,
            key,
            class: click.class.into(),
            country: click.country.into(),
            browser: click.browser.into(),
            system: click.system.into(),
            device: click.device.into(),
            referrer: click.referrer.into(),
            language: click.language.into(),
            referrer_group: detail(Dimension::ReferrerGroup),
            utm_source: detail(Dimension::UtmSource),
            utm_medium: detail(Dimension::UtmMedium),
            utm_campaign: detail(Dimension::UtmCampaign),
            utm_term: detail(Dimension::UtmTerm),
            utm_content: detail(Dimension::UtmContent),
            city: detail(Dimension::City),
            network: detail(Dimension::Network),
            address: click.address.map(|address| address.to_string()),
        }
    }
}

impl ClickBody {
    /// The columns of [`cells`](Self::cells).
    pub(super) const COLUMNS: [&str; 19] = [
        "at",
        "outcome",
        "key",
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
        "address",
    ];

    pub(super) fn cells(self) -> [String; 19] {
        [
            self.at.to_string(),
            self.outcome.as_str().to_owned(),
            self.key.unwrap_or_default(),
            self.class.as_str().to_owned(),
            self.country,
            self.browser,
            self.system,
            self.device,
            self.referrer,
            self.language,
            self.referrer_group.unwrap_or_default(),
            self.utm_source.unwrap_or_default(),
            self.utm_medium.unwrap_or_default(),
            self.utm_campaign.unwrap_or_default(),
            self.utm_term.unwrap_or_default(),
            self.utm_content.unwrap_or_default(),
            self.city.unwrap_or_default(),
            self.network.unwrap_or_default(),
            self.address.unwrap_or_default(),
        ]
    }
}

/// One page of clicks.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ClickPage)]
pub(crate) struct ClicksBody {
    /// Newest first. A page may be short and still have a next one.
    pub(super) clicks: Vec<ClickBody>,
    /// Where the next page starts; `null` on the last one.
    #[schema(required = true)]
    pub(super) next: Option<String>,
}
