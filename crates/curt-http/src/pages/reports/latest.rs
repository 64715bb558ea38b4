//! Clicks one by one.

use curt_core::{Click, ClickOutcome, Dimension};

use crate::pages::PageTime;
use crate::pages::charts::in_words;

pub(in crate::pages) struct LatestClick {
    pub(in crate::pages) at: PageTime,
    /// The key that was asked for; none for the start page.
    pub(in crate::pages) key: String,
    /// Whether there was a link under the key.
    pub(in crate::pages) met_link: bool,
    pub(in crate::pages) class: String,
    pub(in crate::pages) place: String,
    pub(in crate::pages) browser: String,
    pub(in crate::pages) referrer: String,
}

impl LatestClick {
    pub(super) fn new(click: &Click) -> Self {
        let (key, met_link) = match &click.outcome {
            ClickOutcome::Link(id, _) => (id.key.to_string(), true),
            ClickOutcome::Absent(key) => (key.to_string(), false),
            ClickOutcome::BaseUrl => (String::new(), false),
        };
        let place = match click.details.get(Dimension::City) {
            Some(city) => in_words(Dimension::City, city),
            None => in_words(Dimension::Country, &click.country),
        };
        let browser = in_words(Dimension::Browser, &click.browser);
        let system = in_words(Dimension::System, &click.system);
        Self {
            at: click.at.into(),
            key,
            met_link,
            class: in_words(Dimension::Class, click.class.name()),
            place,
            browser: format!("{browser}, {system}"),
            referrer: in_words(Dimension::Referrer, &click.referrer),
        }
    }
}
