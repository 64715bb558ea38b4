//! Clicks as JSON and as lines of CSV.

use curt_core::{Click, ClickOutcome};
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
            address: click.address.map(|address| address.to_string()),
        }
    }
}

impl ClickBody {
    /// The columns of [`cells`](Self::cells).
    pub(super) const COLUMNS: [&str; 11] = [
        "at", "outcome", "key", "class", "country", "browser", "system", "device", "referrer",
        "language", "address",
    ];

    pub(super) fn cells(self) -> [String; 11] {
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
