//! The counts of one window.
//!
//! A click counts in one cell, its subject's hour, which is looked for once. There are few classes and devices: their counts
//! are in the cell. All other values are counted in one table whose key is a single word.

use std::iter::Peekable;
use std::vec;

use curt_core::click::OTHER;
use curt_core::{
    ClickClass, ClickSubject, Day, Dimension, LinkRef, Rollup, SubjectDay, UnixMillis,
};
use hashbrown::HashMap;

use super::AttributedDay;
use super::subject_hours::{SubjectHour, SubjectHours};
use super::table::{AttributedLink, AttributedRef, Numbered, SubjectIndex};
use crate::classify::{Code, Device};
use crate::record::ClickRecord;

#[derive(Default)]
pub(super) struct Rollups {
    links: Numbered<AttributedLink>,
    texts: Numbered<Box<str>>,
    subject_hours: SubjectHours,
    counts: HashMap<CountSlot, u64>,
    /// Kinds and devices that were counted.
    in_cells: usize,
    /// Of what grows besides the tables: texts, links, sketches.
    grown_bytes: usize,
}

/// A value of a dimension in a cell: the numbers of the cell, the dimension and the value, in this order and in one word,
/// so that to look one up takes next to nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct CountSlot(u64);

const VALUE_BITS: u32 = 28;
const SUBJECT_HOUR_SHIFT: u32 = 32;
/// The number of [`OTHER`]: no text has it, as a window is full long before.
const OTHER_NUMBER: u32 = (1 << VALUE_BITS) - 1;

impl CountSlot {
    fn new(subject_hour: u32, dimension: Dimension, value: u32) -> Self {
        let place = u64::from(subject_hour) << SUBJECT_HOUR_SHIFT
            | u64::from(dimension as u8) << VALUE_BITS;
        Self(place | u64::from(value))
    }

    fn subject_hour(self) -> u32 {
        (self.0 >> SUBJECT_HOUR_SHIFT) as u32
    }

    /// The same slot of another cell.
    fn in_subject_hour(self, subject_hour: u32) -> Self {
        Self(u64::from(subject_hour) << SUBJECT_HOUR_SHIFT | self.0 & u64::from(u32::MAX))
    }

    fn value(self) -> u32 {
        (self.0 & 0xffff_ffff) as u32 & OTHER_NUMBER
    }

    /// Whether this is a value of that dimension in that cell.
    fn is_of(self, subject_hour: u32, dimension: Dimension) -> bool {
        self.0 >> VALUE_BITS == Self::new(subject_hour, dimension, 0).0 >> VALUE_BITS
    }
}

/// One hour of one subject, to count in.
pub(super) struct Hour<'a> {
    rollups: &'a mut Rollups,
    subject_hour: u32,
}

const HOUR_MILLIS: i64 = 3_600_000;
/// What an entry of a table takes with the room that tables keep free.
const ENTRY_SHARE: usize = 2;

impl Rollups {
    /// How many rollups there are.
    pub(super) fn len(&self) -> usize {
        self.counts.len() + self.in_cells
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let slot = size_of::<(CountSlot, u64)>() + 1;
        self.grown_bytes
            + ENTRY_SHARE * (self.counts.len() * slot + self.subject_hours.memory_bytes())
    }

    /// The number of the link that was followed, as it was then; nothing for what cannot be one's key.
    pub(super) fn link(&mut self, click: &ClickRecord<'_>) -> Option<SubjectIndex> {
        let attribution = click.attribution;
        let (number, new) = self.links.number(AttributedRef {
            link: LinkRef {
                domain: click.domain,
                key: std::str::from_utf8(click.key).ok()?,
            },
            generation: click.generation,
            attribution,
        })?;
        if new {
            let texts = click.key.len() + attribution.tags.as_bytes().len();
            self.grown_bytes += ENTRY_SHARE * size_of::<AttributedLink>() + texts;
        }
        Some(SubjectIndex(number + 1))
    }

    /// The link that has the number; nothing for orphans.
    pub(super) fn link_of(&self, subject: SubjectIndex) -> Option<&AttributedLink> {
        let number = subject.0.checked_sub(1)?;
        self.links.get(number)
    }

    pub(super) fn hour(&mut self, subject: SubjectIndex, at: UnixMillis) -> Hour<'_> {
        let day = Day::of(at);
        // A clock far off is clamped to the first or last day; so is its hour.
        let last = day.hour(23).0 / HOUR_MILLIS;
        let hour = (at.0.div_euclid(HOUR_MILLIS)).clamp(last - 23, last);
        let hour = u32::try_from(hour).unwrap_or_default();
        let subject_hour = self.subject_hours.find(subject, hour, day);
        Hour {
            rollups: self,
            subject_hour,
        }
    }

    /// The number of a text.
    fn number(&mut self, text: &str) -> u32 {
        if text == OTHER {
            return OTHER_NUMBER;
        }
        let (number, new) = self.texts.number(text);
        if new {
            self.grown_bytes += ENTRY_SHARE * size_of::<Box<str>>() + text.len();
        }
        number
    }

    fn count(&mut self, subject_hour: u32, dimension: Dimension, value: u32) {
        let slot = CountSlot::new(subject_hour, dimension, value);
        if let Some(count) = self.counts.get_mut(&slot) {
            *count += 1;
            return;
        }
        self.counts.insert(slot, 1);
    }

    /// Gives the rollups away by subject and day. The tables keep their room: the next window is likely to need as much.
    pub(super) fn take(&mut self) -> Vec<AttributedDay> {
        let order = self.subject_hours.in_order();
        let mut counts = self.counts_in(&order);
        let mut days: Vec<AttributedDay> = Vec::new();
        let mut open = None;
        for (rank, &number) in (0..).zip(&order) {
            let subject_hour = self.subject_hours.get_mut(number).clone();
            if open != Some((subject_hour.subject, subject_hour.day)) {
                open = Some((subject_hour.subject, subject_hour.day));
                days.push(self.new_day(&subject_hour, number));
            }
            if let Some(day) = days.last_mut() {
                self.add_hour(&mut day.counted.rollups, &subject_hour, rank, &mut counts);
            }
        }
        self.links.clear();
        self.texts.clear();
        self.subject_hours.clear();
        (self.in_cells, self.grown_bytes) = (0, 0);
        days
    }

    /// Takes the table's counts, with ranks in this order instead of the numbers of cells, and sorted.
    fn counts_in(&mut self, order: &[u32]) -> Peekable<vec::IntoIter<(CountSlot, u64)>> {
        let mut ranks = vec![0; order.len()];
        for (rank, &number) in (0..).zip(order) {
            ranks[number as usize] = rank;
        }
        let ranked = |(slot, count): (CountSlot, u64)| {
            let rank = ranks[slot.subject_hour() as usize];
            (slot.in_subject_hour(rank), count)
        };
        let mut counts: Vec<(CountSlot, u64)> = self.counts.drain().map(ranked).collect();
        counts.sort_unstable();
        counts.into_iter().peekable()
    }

    fn new_day(&mut self, subject_hour: &SubjectHour, number: u32) -> AttributedDay {
        let visitors = std::mem::take(self.subject_hours.visitors_mut(number));
        let link = self.link_of(subject_hour.subject);
        let attribution = link.map(AttributedLink::attribution).unwrap_or_default();
        AttributedDay {
            counted: SubjectDay {
                subject: link.map_or(ClickSubject::Orphans, |link| {
                    ClickSubject::Link(link.id.clone(), link.generation)
                }),
                day: subject_hour.day,
                rollups: Vec::new(),
                visitors,
            },
            owner: attribution.reported_owner(),
            tags: attribution.tags.iter().map(Into::into).collect(),
        }
    }

    fn add_hour(
        &self,
        rollups: &mut Vec<Rollup>,
        subject_hour: &SubjectHour,
        rank: u32,
        counts: &mut Peekable<vec::IntoIter<(CountSlot, u64)>>,
    ) {
        let hour = UnixMillis(i64::from(subject_hour.hour) * HOUR_MILLIS);
        for dimension in Dimension::ALL {
            let mut add = |value: &str, count: u64| {
                if count > 0 {
                    rollups.push(Rollup {
                        hour,
                        dimension,
                        value: value.into(),
                        count,
                    });
                }
            };
            match dimension {
                Dimension::Class => {
                    let classes = ClickClass::ALL.iter().zip(subject_hour.classes);
                    classes.for_each(|(class, count)| add(class.name(), count));
                }
                Dimension::Device => {
                    let devices = Device::ALL.iter().zip(subject_hour.devices);
                    devices.for_each(|(device, count)| add(device.name(), count));
                }
                Dimension::Country | Dimension::Language => {
                    while let Some((slot, count)) = next_of(counts, rank, dimension) {
                        match slot.value() {
                            OTHER_NUMBER => add(OTHER, count),
                            code => add(Code::from_number(code).as_str(), count),
                        }
                    }
                }
                _ => {
                    while let Some((slot, count)) = next_of(counts, rank, dimension) {
                        let text = self.texts.get(slot.value());
                        add(text.map_or(OTHER, |text| text), count);
                    }
                }
            }
        }
    }
}

fn next_of(
    counts: &mut Peekable<vec::IntoIter<(CountSlot, u64)>>,
    rank: u32,
    dimension: Dimension,
) -> Option<(CountSlot, u64)> {
    counts.next_if(|(slot, _)| slot.is_of(rank, dimension))
}

impl Hour<'_> {
    pub(super) fn count_class(&mut self, class: ClickClass) {
        let count = &mut self
            .rollups
            .subject_hours
            .get_mut(self.subject_hour)
            .classes[class as usize];
        *count += 1;
        self.rollups.in_cells += usize::from(*count == 1);
    }

    pub(super) fn count_device(&mut self, device: Device) {
        let count = &mut self
            .rollups
            .subject_hours
            .get_mut(self.subject_hour)
            .devices[device as usize];
        *count += 1;
        self.rollups.in_cells += usize::from(*count == 1);
    }

    /// Counts a value of [`Dimension::Country`] or [`Dimension::Language`].
    pub(super) fn count_code(&mut self, dimension: Dimension, code: Code) {
        self.rollups
            .count(self.subject_hour, dimension, code.number());
    }

    /// Counts a value of a dimension that has texts.
    pub(super) fn count_text(&mut self, dimension: Dimension, text: &str) {
        let value = self.rollups.number(text);
        self.rollups.count(self.subject_hour, dimension, value);
    }

    /// Counts a visitor of the day by its hash.
    pub(super) fn came(&mut self, visitor: u64) {
        let sketch = self.rollups.subject_hours.visitors_mut(self.subject_hour);
        let before = sketch.held_bytes();
        sketch.insert(visitor);
        // A sketch shrinks once, when marks become registers.
        self.rollups.grown_bytes =
            (self.rollups.grown_bytes + sketch.held_bytes()).saturating_sub(before);
    }
}
