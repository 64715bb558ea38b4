//! The counts of one window.

use curt_core::click::OTHER;
use curt_core::limits::VALUES_PER_DAY_MAX;
use curt_core::{
    ClickSubject, ClickSum, Day, Dimension, DomainId, LinkId, Sketch, SubjectDay, UnixMillis,
    VisitKind,
};
use hashbrown::HashMap;

use super::table::{Numbered, SubjectNumber};
use crate::classify::Device;

#[derive(Default)]
pub(super) struct Sums {
    links: Numbered<LinkId>,
    texts: Numbered<Box<str>>,
    counts: HashMap<Slot, u64>,
    /// How many values a dimension has in an hour of a subject.
    values: HashMap<Place, u32>,
    visitors: HashMap<(SubjectNumber, Day), Sketch>,
    /// Of what grows besides the tables: texts, links, sketches.
    grown_bytes: usize,
    crowded_out: u64,
}

/// A dimension in an hour of a subject.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    subject: SubjectNumber,
    /// Hours since 1970.
    hour: u32,
    dimension: Dimension,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Slot {
    place: Place,
    /// A number of the dimension's own for kinds and devices, of a text otherwise.
    value: u32,
}

/// A value to be counted.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Kind(VisitKind),
    Device(Device),
    Text(&'a str),
}

/// One hour of one subject, to count in.
pub(super) struct Hour<'a> {
    sums: &'a mut Sums,
    subject: SubjectNumber,
    hour: u32,
    day: Day,
}

const HOUR_MILLIS: i64 = 3_600_000;
/// What an entry of a table takes with the room that tables keep free.
const ENTRY_SHARE: usize = 2;

impl Sums {
    /// How many sums there are.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    pub(super) fn held_bytes(&self) -> usize {
        let slot = size_of::<(Slot, u64)>() + 1;
        let place = size_of::<(Place, u32)>() + 1;
        self.grown_bytes + ENTRY_SHARE * (self.counts.len() * slot + self.values.len() * place)
    }

    /// The number of a link; nothing for what cannot be one's key.
    pub(super) fn link(&mut self, domain: DomainId, key: &[u8]) -> Option<SubjectNumber> {
        let (number, new) = self.links.number(domain, key)?;
        if new {
            self.grown_bytes += ENTRY_SHARE * size_of::<LinkId>() + key.len();
        }
        Some(SubjectNumber(number + 1))
    }

    /// The link that has the number; nothing for orphans.
    pub(super) fn link_of(&self, subject: SubjectNumber) -> Option<LinkId> {
        let number = subject.0.checked_sub(1)?;
        self.links.get(number).cloned()
    }

    pub(super) fn hour(&mut self, subject: SubjectNumber, at: UnixMillis) -> Hour<'_> {
        let day = Day::of(at);
        // A clock far off is clamped to the first or last day; so is its hour.
        let last = day.hour(23).0 / HOUR_MILLIS;
        let hour = (at.0.div_euclid(HOUR_MILLIS)).clamp(last - 23, last);
        Hour {
            sums: self,
            subject,
            hour: hour as u32,
            day,
        }
    }

    fn number(&mut self, text: &str) -> u32 {
        let (number, new) = self.texts.number(text);
        if new {
            self.grown_bytes += ENTRY_SHARE * size_of::<Box<str>>() + text.len();
        }
        number
    }

    fn count(&mut self, place: Place, value: u32) {
        let slot = Slot { place, value };
        if let Some(count) = self.counts.get_mut(&slot) {
            *count += 1;
            return;
        }
        let values = self.values.entry(place).or_insert(0);
        if *values < VALUES_PER_DAY_MAX as u32 {
            *values += 1;
            self.counts.insert(slot, 1);
        } else {
            self.crowded_out += 1;
            let value = self.number(OTHER);
            *self.counts.entry(Slot { place, value }).or_insert(0) += 1;
        }
    }

    /// Gives the sums away by subject and day, with how many counts had to share the value of others. The tables keep
    /// their room: the next window is likely to need as much.
    pub(super) fn take(&mut self) -> (Vec<SubjectDay>, u64) {
        let mut counts: Vec<(Slot, u64)> = self.counts.drain().collect();
        counts.sort_unstable();
        let mut days: Vec<SubjectDay> = Vec::new();
        let mut open = None;
        for (slot, count) in counts {
            let hour = UnixMillis(i64::from(slot.place.hour) * HOUR_MILLIS);
            let key = (slot.place.subject, Day::of(hour));
            if open != Some(key) {
                open = Some(key);
                days.push(SubjectDay {
                    subject: self
                        .link_of(key.0)
                        .map_or(ClickSubject::Orphans, ClickSubject::Link),
                    day: key.1,
                    sums: Vec::new(),
                    visitors: self.visitors.remove(&key).unwrap_or_default(),
                });
            }
            if let Some(day) = days.last_mut() {
                day.sums.push(ClickSum {
                    hour,
                    dimension: slot.place.dimension,
                    value: self.text(slot).into(),
                    count,
                });
            }
        }
        self.links.clear();
        self.texts.clear();
        self.values.clear();
        self.visitors.clear();
        self.grown_bytes = 0;
        (days, std::mem::take(&mut self.crowded_out))
    }

    fn text(&self, slot: Slot) -> &str {
        let number = slot.value as usize;
        match slot.place.dimension {
            Dimension::Kind => VisitKind::ALL.get(number).map_or(OTHER, |kind| kind.name()),
            Dimension::Device => Device::ALL
                .get(number)
                .map_or(OTHER, |device| device.name()),
            _ => self.texts.get(slot.value).map_or(OTHER, |text| text),
        }
    }
}

impl Hour<'_> {
    pub(super) fn count(&mut self, dimension: Dimension, value: Value<'_>) {
        let value = match value {
            Value::Kind(kind) => kind as u32,
            Value::Device(device) => device as u32,
            Value::Text(text) => self.sums.number(text),
        };
        let place = Place {
            subject: self.subject,
            hour: self.hour,
            dimension,
        };
        self.sums.count(place, value);
    }

    /// Counts a visitor of the day by its hash.
    pub(super) fn came(&mut self, visitor: u64) {
        let sketch = self
            .sums
            .visitors
            .entry((self.subject, self.day))
            .or_insert_with(|| {
                self.sums.grown_bytes += ENTRY_SHARE * size_of::<((SubjectNumber, Day), Sketch)>();
                Sketch::new()
            });
        let before = sketch.held_bytes();
        sketch.insert(visitor);
        // A sketch shrinks once, when marks become registers.
        self.sums.grown_bytes =
            (self.sums.grown_bytes + sketch.held_bytes()).saturating_sub(before);
    }
}
