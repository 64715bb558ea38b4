//! Clicks become rollups: per link and hour, dimension and value, and per link and day the visitors.
//!
//! Every click counts once in [`Dimension::Class`], whatever it is taken for, so totals are exact; the other dimensions
//! and the visitors count humans only. Orphan clicks have one subject together, which also counts how they came about
//! and the keys that were asked for.
//!
//! An aggregate is a window: it starts empty, takes clicks until the time or [`Aggregate::memory_bytes`] says so, and
//! gives its rollups away with [`Aggregate::take`]. Those of any parts of a stream add up to those of the whole.

mod click_rows;
mod counter_code;
mod fact_numbers;
mod groups;
mod rollups;
mod salts;
mod subject_hours;
mod table;

use std::sync::Arc;
use std::time::Duration;

use curt_core::click_block::{NewBlock, field};
use curt_core::limits::KEY_BYTES_MAX;
use curt_core::ports::StreamPartition;
use curt_core::{ClickClass, ClickOutcome, Day, Dimension, SubjectDay, UnixMillis};

pub use salts::{SaltWanted, Salts};

use crate::classify::{Classifier, ReferenceData};
use crate::record::{ClickRecord, Outcome};
use click_rows::{ClickRows, RowNumbers};
use fact_numbers::FactNumbers;
use rollups::{Hour, Rollups};
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
    rows: ClickRows,
    clicks: u64,
}

/// What an aggregate has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aggregated {
    /// Of links and orphans, and of everything, the owners and the tags that their clicks count for too. A link's day comes
    /// again for every owner and every set of tags that it had within the window.
    pub days: Vec<SubjectDay>,
    /// Single clicks in the order in which they came.
    pub blocks: Vec<NewBlock>,
    /// How many clicks were counted.
    pub clicks: u64,
}

impl Aggregate {
    #[must_use]
    pub fn new(settings: AggregateSettings, reference: Arc<ReferenceData>) -> Self {
        Self {
            settings,
            classifier: Classifier::new(reference),
            salts: Salts::default(),
            rollups: Rollups::default(),
            rows: ClickRows::default(),
            clicks: 0,
        }
    }

    /// Reads clicks by other rules and lists from now on; what was remembered by the former ones is dropped.
    pub fn use_reference(&mut self, reference: Arc<ReferenceData>) {
        self.classifier = Classifier::new(reference);
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
        let numbers = self.rollups.numbers_of(&facts);
        let (subject, orphan) = self.subject(click);
        let mut hour = self.rollups.hour(subject, at);
        hour.count(Dimension::Class, numbers.class);
        if let Some(visitor) = visitor {
            count_human(&mut hour, &numbers);
            hour.came(visitor);
        }
        if let Some(orphan) = &orphan {
            count_orphan(&mut hour, orphan);
        }
        if self.settings.keeps_clicks {
            self.keep(click, at, subject, orphan.as_ref(), &numbers);
        }
        self.clicks += 1;
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

    /// Keeps the click by itself.
    fn keep(
        &mut self,
        click: &ClickRecord<'_>,
        at: UnixMillis,
        subject: SubjectIndex,
        orphan: Option<&ClickOutcome>,
        numbers: &FactNumbers,
    ) {
        let asked = match orphan {
            Some(ClickOutcome::Absent(key)) => Some(&**key),
            _ => None,
        };
        let (owner, tags) = self.rollups.attribution_numbers(subject);
        let address = self.settings.keeps_addresses.then_some(click.address);
        let nothing = self.rollups.number("");
        let mut row: RowNumbers = [nothing; field::FIELDS];
        row[field::OUTCOME] = self.rollups.outcome_number(subject, asked);
        row[field::OWNER] = owner;
        row[field::TAGS] = tags;
        row[field::CLASS] = numbers.class;
        row[field::COUNTRY] = numbers.country;
        row[field::BROWSER] = numbers.browser;
        row[field::SYSTEM] = numbers.system;
        row[field::DEVICE] = numbers.device;
        row[field::REFERRER] = numbers.referrer;
        row[field::LANGUAGE] = numbers.language;
        row[field::ADDRESS] = self.rows.number_address(address);
        for (column, detail) in row[field::DETAILS..].iter_mut().zip(numbers.details) {
            *column = detail.unwrap_or(nothing);
        }
        let rollups = &self.rollups;
        self.rows.push(at, &row, |column, number| {
            rollups.column_value(column, number)
        });
    }

    /// How many rollups the window holds.
    #[must_use]
    pub fn rollups(&self) -> usize {
        self.rollups.len()
    }

    /// Memory that the window holds, about.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.rollups.memory_bytes() + self.rows.memory_bytes()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clicks == 0
    }

    /// Gives the window away, which began at `from` in the partition, and starts the next one. What was read about agents
    /// and referrers stays remembered.
    pub fn take(&mut self, partition: StreamPartition, from: u64) -> Aggregated {
        let rollups = &self.rollups;
        let blocks = self.rows.take(partition, from, |column, number| {
            rollups.column_value(column, number)
        });
        Aggregated {
            days: self.rollups.take(),
            blocks,
            clicks: std::mem::take(&mut self.clicks),
        }
    }

    /// Drops the window and starts the next one.
    pub fn clear(&mut self) {
        self.rollups.clear();
        self.rows = ClickRows::default();
        self.clicks = 0;
    }

    pub fn salts(&mut self) -> &mut Salts {
        &mut self.salts
    }
}

fn count_human(hour: &mut Hour<'_>, numbers: &FactNumbers) {
    hour.count(Dimension::Country, numbers.country);
    hour.count(Dimension::Browser, numbers.browser);
    hour.count(Dimension::System, numbers.system);
    hour.count(Dimension::Device, numbers.device);
    hour.count(Dimension::Referrer, numbers.referrer);
    hour.count(Dimension::Language, numbers.language);
    for (dimension, detail) in Dimension::DETAILS.into_iter().zip(numbers.details) {
        if let Some(detail) = detail {
            hour.count(dimension, detail);
        }
    }
}

fn count_orphan(hour: &mut Hour<'_>, outcome: &ClickOutcome) {
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
