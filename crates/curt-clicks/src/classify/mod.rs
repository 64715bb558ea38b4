//! From a click to what is counted about it: human or not, country, browser, system, device, referrer, language.
//!
//! Nothing of this is asked for on the redirect path. Strangers write the texts, so every value is bounded, and what
//! cannot be told is [`UNKNOWN`].

mod agent;
mod code;
mod country;
mod language;
mod referrer;
mod rules;

use std::sync::Arc;

use curt_core::ClickClass;
use quick_cache::unsync::Cache;

pub use agent::{Agent, Device};
pub use code::Code;
pub use country::{Countries, CountriesError};
pub use rules::{BUILT_IN, ClickRules, RulesError, RulesProblem};

use crate::record::{ClickRecord, Method};
use country::CountryLookups;

/// The value of what cannot be told.
pub const UNKNOWN: &str = "unknown";
/// The referrer of clicks that name none.
pub const DIRECT: &str = "direct";

/// Texts whose reading is remembered, of each sort. Most clicks come from a few thousand browsers.
const REMEMBERED: usize = 16_384;

/// What clicks are read by: rules and lists that are loaded at the start.
pub struct ReferenceData {
    pub rules: Arc<ClickRules>,
    pub countries: Countries,
}

impl Default for ReferenceData {
    /// The built-in rules and no lists.
    fn default() -> Self {
        Self {
            rules: ClickRules::built_in(),
            countries: Countries::none(),
        }
    }
}

/// Reads clicks, and remembers what it has read before. One per consumer.
pub struct Classifier {
    rules: Arc<ClickRules>,
    agents: Cache<Box<[u8]>, Arc<Agent>>,
    referrers: Cache<Box<[u8]>, Arc<str>>,
    countries: CountryLookups,
    direct: Arc<str>,
}

/// What a click says about itself.
#[derive(Clone, Debug)]
pub struct Facts {
    pub class: ClickClass,
    pub agent: Arc<Agent>,
    /// Host of the page that led here, or [`DIRECT`].
    pub referrer: Arc<str>,
    /// Two letters of ISO 3166, or [`UNKNOWN`].
    pub country: Code,
    /// Primary subtag of the preferred language, or [`UNKNOWN`].
    pub language: Code,
}

impl Facts {
    /// What reports call the visitor's device.
    #[must_use]
    pub fn device(&self) -> Device {
        self.agent.device
    }
}

impl Classifier {
    #[must_use]
    pub fn new(reference: Arc<ReferenceData>) -> Self {
        Self {
            rules: Arc::clone(&reference.rules),
            agents: Cache::new(REMEMBERED),
            referrers: Cache::new(REMEMBERED),
            countries: CountryLookups::new(reference),
            direct: DIRECT.into(),
        }
    }

    pub fn facts(&mut self, click: &ClickRecord<'_>) -> Facts {
        let agent = self.agent(click.agent);
        Facts {
            class: class(click, agent.device != Device::Bot),
            agent,
            referrer: self.referrer(click.referrer),
            country: self.countries.country(click.address),
            language: language::preferred(click.language),
        }
    }

    fn agent(&mut self, text: &[u8]) -> Arc<Agent> {
        if let Some(known) = self.agents.get(text) {
            return Arc::clone(known);
        }
        let agent = Arc::new(self.rules.read(text));
        self.agents.insert(text.into(), Arc::clone(&agent));
        agent
    }

    fn referrer(&mut self, text: &[u8]) -> Arc<str> {
        if text.is_empty() {
            return Arc::clone(&self.direct);
        }
        if let Some(known) = self.referrers.get(text) {
            return Arc::clone(known);
        }
        let host: Arc<str> = referrer::host(text).as_deref().unwrap_or(UNKNOWN).into();
        self.referrers.insert(text.into(), Arc::clone(&host));
        host
    }
}

impl ClickRules {
    /// Whether the click is a person's, for limits on clicks. Takes about a microsecond, as nothing is remembered.
    #[must_use]
    pub fn counts_as_human(&self, click: &ClickRecord<'_>) -> bool {
        class(click, self.is_human(click.agent)) == ClickClass::Human
    }
}

/// A look at the headers alone and a page that is only fetched ahead are never a person's click, whoever asks.
fn class(click: &ClickRecord<'_>, is_human: bool) -> ClickClass {
    if click.method == Method::Head {
        ClickClass::Head
    } else if click.prefetch {
        ClickClass::Prefetch
    } else if is_human {
        ClickClass::Human
    } else {
        ClickClass::Bot
    }
}
