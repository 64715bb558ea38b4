//! From a click to what is counted about it: human or not, where from, browser, system, device, referrer, language, UTM
//! parameters.
//!
//! Nothing of this is asked for on the redirect path. Strangers write the texts, so every value is bounded, and what
//! cannot be told is [`UNKNOWN`].

mod address_list;
mod agent;
mod code;
mod language;
mod reference;
mod referrer;
mod rules;
mod utm;

use std::sync::Arc;

use curt_core::{ClickClass, Dimension};
use quick_cache::unsync::Cache;

pub use address_list::{AddressList, AddressListError, AddressPlace};
pub use agent::{Agent, Device};
pub use code::Code;
pub use reference::{
    CurrentReference, ReferenceData, ReferenceError, ReferenceFiles, ReferencePaths,
};
pub use rules::{BUILT_IN, ClickRules, ReferrerGroup, RulesError, RulesProblem};

use crate::record::{ClickRecord, Method};
use address_list::AddressLookups;

/// The value of what cannot be told.
pub const UNKNOWN: &str = "unknown";
/// The referrer of clicks that name none.
pub const DIRECT: &str = "direct";

/// Texts whose reading is remembered, of each sort. Most clicks come from a few thousand browsers.
const REMEMBERED: usize = 16_384;

/// Reads clicks, and remembers what it has read before. One per consumer.
pub struct Classifier {
    reference: Arc<ReferenceData>,
    agents: Cache<Box<[u8]>, Arc<Agent>>,
    referrers: Cache<Box<[u8]>, Arc<Referrer>>,
    places: AddressLookups<AddressPlace>,
    networks: AddressLookups<Option<Arc<str>>>,
    direct: Arc<Referrer>,
}

/// What a click says about itself.
#[derive(Clone, Debug)]
pub struct Facts {
    pub class: ClickClass,
    pub agent: Arc<Agent>,
    pub referrer: Arc<Referrer>,
    pub place: AddressPlace,
    /// The organisation that runs the visitor's network, where a list tells.
    pub network: Option<Arc<str>>,
    /// Primary subtag of the preferred language, or [`UNKNOWN`].
    pub language: Code,
    /// Values of the `utm_` parameters that the click has.
    pub utm: Vec<(Dimension, Box<str>)>,
}

/// What led here.
#[derive(Debug)]
pub struct Referrer {
    /// Of the page, or [`DIRECT`], or [`UNKNOWN`].
    pub host: Box<str>,
    pub group: ReferrerGroup,
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
            agents: Cache::new(REMEMBERED),
            referrers: Cache::new(REMEMBERED),
            places: AddressLookups::new(AddressPlace::read),
            networks: AddressLookups::new(address_list::read_network),
            direct: Arc::new(Referrer {
                host: DIRECT.into(),
                group: ReferrerGroup::Direct,
            }),
            reference,
        }
    }

    pub fn facts(&mut self, click: &ClickRecord<'_>) -> Facts {
        let agent = self.agent(click.agent);
        Facts {
            class: class(click, agent.device != Device::Bot),
            agent,
            referrer: self.referrer(click.referrer),
            place: self.places.get(&self.reference.countries, click.address),
            network: self.networks.get(&self.reference.networks, click.address),
            language: language::preferred(click.language),
            utm: match click.utm.is_empty() {
                true => Vec::new(),
                false => utm::values(&click.utm.bytes().collect::<Vec<_>>()),
            },
        }
    }

    fn agent(&mut self, text: &[u8]) -> Arc<Agent> {
        if let Some(known) = self.agents.get(text) {
            return Arc::clone(known);
        }
        let agent = Arc::new(self.reference.rules.read(text));
        self.agents.insert(text.into(), Arc::clone(&agent));
        agent
    }

    fn referrer(&mut self, text: &[u8]) -> Arc<Referrer> {
        if text.is_empty() {
            return Arc::clone(&self.direct);
        }
        if let Some(known) = self.referrers.get(text) {
            return Arc::clone(known);
        }
        let host = referrer::host(text).unwrap_or_else(|| UNKNOWN.to_owned());
        let referrer = Arc::new(Referrer {
            group: self.reference.rules.referrer_group(&host),
            host: host.into(),
        });
        self.referrers.insert(text.into(), Arc::clone(&referrer));
        referrer
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
