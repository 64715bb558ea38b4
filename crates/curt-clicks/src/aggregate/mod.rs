//! Clicks become rollups: per link and hour, dimension and value, and per link and day the visitors.
//!
//! Every click counts once in [`Dimension::Class`], whatever it is taken for, so totals are exact; the other dimensions
//! and the visitors count humans only. Orphan clicks have one subject together, which also counts how they came about
//! and the keys that were asked for.
//!
//! An aggregate is a window: it starts empty, takes clicks until the time or [`Aggregate::memory_bytes`] says so, and
//! gives its rollups away with [`Aggregate::take`]. Those of any parts of a stream add up to those of the whole.

mod rollups;
mod salts;
mod subject_hours;
mod table;

use std::sync::Arc;
use std::time::Duration;

use curt_core::limits::KEY_BYTES_MAX;
use curt_core::{
    Attribution, Click, ClickClass, ClickOutcome, Day, Dimension, OwnerId, SubjectDay, UnixMillis,
};

pub use salts::{SaltWanted, Salts};

use crate::classify::{Classifier, Facts, ReferenceData};
use crate::record::{ClickRecord, Outcome};
use rollups::Rollups;
use table::SubjectIndex;

/// A click may be this far ahead of the consumer's clock, which may be another machine's.
const AHEAD_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
pub struct AggregateSettings {
    /// Whether clicks are kept one by one.
    pub keeps_clicks: bool,
    /// Whether a kept click keeps the visitor's address.
    pub keeps_addresses: bool,
}

impl Default for AggregateSettings {
    fn default() -> Self {
        Self {
            keeps_clicks: true,
            keeps_addresses: false,
        }
    }
}

/// Counts clicks. One per partition of the stream.
pub struct Aggregate {
    settings: AggregateSettings,
    classifier: Classifier,
    salts: Salts,
    rollups: Rollups,
    clicks: Vec<Click>,
}

/// A day of a link or of the orphans, and whom its clicks count for too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributedDay {
    pub counted: SubjectDay,
    /// Of the link when it was followed; `None` for orphans and links without one.
    pub owner: Option<OwnerId>,
    pub tags: Vec<Box<str>>,
}

/// What an aggregate has counted. Links are the only subjects besides orphans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aggregated {
    /// By subject and day. One comes again for every owner and every set of tags that it had within the window.
    pub days: Vec<AttributedDay>,
    /// In the order in which they came.
    pub clicks: Vec<Click>,
}

impl Aggregated {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.days.is_empty() && self.clicks.is_empty()
    }
}

impl Aggregate {
    #[must_use]
    pub fn new(settings: AggregateSettings, reference: Arc<ReferenceData>) -> Self {
        Self {
            settings,
            classifier: Classifier::new(reference),
            salts: Salts::default(),
            rollups: Rollups::default(),
            clicks: Vec::new(),
        }
    }

    /// Counts a click that is read at `now`. A human click of a day whose salt is not here yet changes nothing: give the
    /// salt and add it again.
    pub fn add(&mut self, click: &ClickRecord<'_>, now: UnixMillis) -> Result<(), SaltWanted> {
        let at = believable(click.at, now);
        let facts = self.classifier.facts(click);
        let visitor = match facts.class {
            ClickClass::Human => Some(self.salts.visitor(Day::of(at), click)?),
            _ => None,
        };
        let (subject, outcome) = self.subject(click);
        let mut hour = self.rollups.hour(subject, at);
        hour.count_class(facts.class);
        if let Some(visitor) = visitor {
            count_human(&mut hour, &facts);
            hour.came(visitor);
        }
        if let Some(outcome) = &outcome {
            count_orphan(&mut hour, outcome);
        }
        if self.settings.keeps_clicks {
            let link = self.rollups.link_of(subject);
            let outcome = outcome
                .or_else(|| link.map(|link| ClickOutcome::Link(link.id.clone(), link.generation)));
            self.clicks
                .extend(outcome.map(|outcome| self.row(click, at, outcome, facts)));
        }
        Ok(())
    }

    /// The number of the click's subject, and what was followed if that was no link.
    fn subject(&mut self, click: &ClickRecord<'_>) -> (SubjectIndex, Option<ClickOutcome>) {
        if click.outcome == Outcome::Redirected
            && let Some(link) = self.rollups.link(click)
        {
            return (link, None);
        }
        let outcome = match click.outcome {
            Outcome::Base => ClickOutcome::BaseUrl,
            Outcome::Absent | Outcome::Redirected => ClickOutcome::Absent(asked(click.key)),
        };
        (SubjectIndex::ORPHANS, Some(outcome))
    }

    fn row(
        &self,
        click: &ClickRecord<'_>,
        at: UnixMillis,
        outcome: ClickOutcome,
        facts: Facts,
    ) -> Click {
        let attribution = match outcome {
            ClickOutcome::Link(..) => click.attribution,
            ClickOutcome::Absent(_) | ClickOutcome::BaseUrl => Attribution::default(),
        };
        Click {
            at,
            outcome,
            owner: attribution.reported_owner(),
            tags: attribution.tags.iter().map(Into::into).collect(),
            class: facts.class,
            country: facts.country.as_str().into(),
            browser: facts.agent.browser.clone(),
            system: facts.agent.system.clone(),
            device: facts.agent.device.name().into(),
            referrer: (&*facts.referrer).into(),
            language: facts.language.as_str().into(),
            address: self.settings.keeps_addresses.then_some(click.address),
        }
    }

    /// How many rollups the window holds.
    #[must_use]
    pub fn rollups(&self) -> usize {
        self.rollups.len()
    }

    /// Memory that the window holds, about.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        // A row's texts are short: half of them are "unknown" and the like.
        const ROW_BYTES: usize = size_of::<Click>() + 100;
        self.rollups.memory_bytes() + self.clicks.len() * ROW_BYTES
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rollups.len() == 0
    }

    /// Gives the window away and starts the next one. What was read about agents and referrers stays remembered.
    pub fn take(&mut self) -> Aggregated {
        Aggregated {
            days: self.rollups.take(),
            clicks: std::mem::take(&mut self.clicks),
        }
    }

    pub fn salts(&mut self) -> &mut Salts {
        &mut self.salts
    }
}

fn count_human(hour: &mut rollups::Hour<'_>, facts: &Facts) {
    hour.count_code(Dimension::Country, facts.country);
    hour.count_text(Dimension::Browser, &facts.agent.browser);
    hour.count_text(Dimension::System, &facts.agent.system);
    hour.count_device(facts.agent.device);
    hour.count_text(Dimension::Referrer, &facts.referrer);
    hour.count_code(Dimension::Language, facts.language);
}

fn count_orphan(hour: &mut rollups::Hour<'_>, outcome: &ClickOutcome) {
    if let Some(orphan) = outcome.orphan() {
        hour.count_text(Dimension::Orphan, orphan);
    }
    if let ClickOutcome::Absent(key) = outcome {
        hour.count_text(Dimension::Key, key);
    }
}

/// The past is kept: a spool may be read long after a click. The future is not: it would sit in reports until it comes.
fn believable(at: UnixMillis, now: UnixMillis) -> UnixMillis {
    if at > now.plus(AHEAD_MAX) { now } else { at }
}

/// A key that somebody asked for, as text, whatever it was.
fn asked(key: &[u8]) -> Box<str> {
    let text = String::from_utf8_lossy(key).replace(char::is_control, "\u{fffd}");
    text[..text.floor_char_boundary(KEY_BYTES_MAX)].into()
}
