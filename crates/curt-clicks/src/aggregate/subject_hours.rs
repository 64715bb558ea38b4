//! The hours of the subjects of one window, and what is counted in them.
//!
//! Most links have few clicks in a window, and so few values in an hour: these are looked for one by one, side by side in
//! memory. Only hours with many values are indexed.

use curt_core::{Day, Dimension, Sketch};
use hashbrown::HashMap;

use super::table::{SubjectIndex, next_number};

/// Values of an hour that are looked for one by one.
const SCANNED_MAX: usize = 24;
/// Room that an hour has for values from the start: as many as one human click has.
const VALUES_MIN: usize = 8;

/// A value of a dimension, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ValueSlot(u32);

const VALUE_BITS: u32 = 26;
/// No value has a higher number: a window is full long before.
pub(super) const VALUE_NUMBER_MAX: u32 = (1 << VALUE_BITS) - 1;

impl ValueSlot {
    pub(super) fn new(dimension: Dimension, value: u32) -> Self {
        Self(u32::from(dimension as u8) << VALUE_BITS | value)
    }

    pub(super) fn dimension(self) -> Option<Dimension> {
        Dimension::from_stored(u8::try_from(self.0 >> VALUE_BITS).ok()?)
    }

    pub(super) fn value(self) -> u32 {
        self.0 & VALUE_NUMBER_MAX
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ValueCount {
    pub(super) slot: ValueSlot,
    pub(super) count: u32,
}

/// One hour of one subject.
pub(super) struct SubjectHour {
    pub(super) subject: SubjectIndex,
    /// Hours since 1970.
    pub(super) hour: u32,
    pub(super) day: Day,
    /// Place of the visitors of the subject's day.
    visitors: u32,
    /// Number of the subject's hour that was made before this one.
    before: Option<u32>,
    /// A value may come more than once.
    pub(super) counts: Vec<ValueCount>,
}

/// Hours have numbers in the order in which they are made.
#[derive(Default)]
pub(super) struct SubjectHours {
    subject_hours: Vec<SubjectHour>,
    /// By the number of the subject: its newest hour. Clicks come about in the order of time, so that is almost always
    /// the one that is looked for.
    newest: Vec<Option<u32>>,
    visitors: Vec<Sketch>,
    /// Places of counts in hours that have many.
    places: HashMap<(u32, ValueSlot), u32>,
    /// How many counts there are.
    counts: usize,
    /// What sketches hold.
    sketch_bytes: usize,
}

impl SubjectHours {
    /// The number of a subject's hour; made if it is absent.
    pub(super) fn find(&mut self, subject: SubjectIndex, hour: u32, day: Day) -> u32 {
        let place = subject.0 as usize;
        if place >= self.newest.len() {
            self.newest.resize(place + 1, None);
        }
        let newest = self.newest[place];
        let same = |subject_hour: &SubjectHour| subject_hour.hour == hour;
        if let Some(number) = self.search(newest, same) {
            return number;
        }
        let visitors = match self.search(newest, |subject_hour| subject_hour.day == day) {
            Some(number) => self.subject_hours[number as usize].visitors,
            None => {
                let number = next_number(&self.visitors);
                self.visitors.push(Sketch::new());
                number
            }
        };
        let number = next_number(&self.subject_hours);
        self.newest[place] = Some(number);
        self.subject_hours.push(SubjectHour {
            subject,
            hour,
            day,
            visitors,
            before: newest,
            counts: Vec::with_capacity(VALUES_MIN),
        });
        number
    }

    /// The first of the subject's hours that is meant, from the newest on.
    fn search(&self, newest: Option<u32>, is_meant: impl Fn(&SubjectHour) -> bool) -> Option<u32> {
        let before = |&number: &u32| self.subject_hours[number as usize].before;
        std::iter::successors(newest, before)
            .find(|&number| is_meant(&self.subject_hours[number as usize]))
    }

    /// Counts a value `times` in an hour.
    pub(super) fn count(&mut self, number: u32, slot: ValueSlot, times: u32) {
        let counts = &mut self.subject_hours[number as usize].counts;
        let place = match counts.len() <= SCANNED_MAX {
            true => counts.iter().position(|count| count.slot == slot),
            false => {
                let place = self.places.get(&(number, slot));
                place.map(|place| *place as usize)
            }
        };
        if let Some(place) = place
            && let Some(sum) = counts[place].count.checked_add(times)
        {
            counts[place].count = sum;
            return;
        }
        counts.push(ValueCount { slot, count: times });
        self.counts += 1;
        let new = counts.len() - 1;
        if new >= SCANNED_MAX {
            // Those that were looked for one by one until now come into the index with the first beyond them.
            let first = if new == SCANNED_MAX { 0 } else { new };
            for (place, count) in (0..).zip(&*counts).skip(first) {
                self.places.insert((number, count.slot), place);
            }
        }
    }

    /// Adds a visitor to the hour's day by its hash.
    pub(super) fn add_visitor(&mut self, number: u32, visitor: u64) {
        let place = self.subject_hours[number as usize].visitors;
        let sketch = &mut self.visitors[place as usize];
        let before = sketch.held_bytes();
        sketch.insert(visitor);
        // A sketch shrinks once, when marks become registers.
        self.sketch_bytes = (self.sketch_bytes + sketch.held_bytes()).saturating_sub(before);
    }

    /// Adds an hour of another subject, without its visitors.
    pub(super) fn add_hour(&mut self, subject: SubjectIndex, other: &SubjectHour) {
        let number = self.find(subject, other.hour, other.day);
        for ValueCount { slot, count } in &other.counts {
            self.count(number, *slot, *count);
        }
    }

    /// Adds visitors to a subject's day, of which an hour is there.
    pub(super) fn merge_visitors(
        &mut self,
        subject: SubjectIndex,
        hour: u32,
        day: Day,
        of: &Sketch,
    ) {
        let number = self.find(subject, hour, day);
        let place = self.subject_hours[number as usize].visitors;
        self.visitors[place as usize].merge(of);
    }

    /// The visitors of the hour's day, taken away.
    pub(super) fn take_visitors(&mut self, number: u32) -> Sketch {
        let place = self.subject_hours[number as usize].visitors;
        std::mem::take(&mut self.visitors[place as usize])
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut SubjectHour {
        &mut self.subject_hours[number as usize]
    }

    /// How many counts there are.
    pub(super) fn counts(&self) -> usize {
        self.counts
    }

    /// Memory that it holds, about: vectors and tables keep room free.
    pub(super) fn memory_bytes(&self) -> usize {
        let hours = self.subject_hours.len()
            * (size_of::<SubjectHour>() + VALUES_MIN * size_of::<ValueCount>())
            + self.newest.len() * size_of::<Option<u32>>()
            + self.visitors.len() * size_of::<Sketch>();
        let counts = self
            .counts
            .saturating_sub(VALUES_MIN * self.subject_hours.len())
            * size_of::<ValueCount>()
            + self.places.len() * (size_of::<((u32, ValueSlot), u32)>() + 1);
        self.sketch_bytes + 3 * hours / 2 + 2 * counts
    }

    /// The numbers of all hours in the order of subjects and hours.
    pub(super) fn in_order(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..next_number(&self.subject_hours)).collect();
        numbers.sort_unstable_by_key(|&number| {
            let subject_hour = &self.subject_hours[number as usize];
            (subject_hour.subject, subject_hour.hour)
        });
        numbers
    }

    /// Removes all hours and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.subject_hours.clear();
        self.newest.clear();
        self.visitors.clear();
        self.places.clear();
        (self.counts, self.sketch_bytes) = (0, 0);
    }
}
