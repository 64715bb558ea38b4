//! Which records of a partition were read already, by their producers' numbers.
//!
//! A producer that was cut off sends its last records again, and so does another one that takes over its spool. Each
//! record says which number came before it. So the numbers that a partition has seen of a producer are ranges, nearly
//! always one; a record is new if its number lies in none of them. That is exact in any order of delivery.

use std::collections::BTreeMap;

use curt_core::ports::ProducerId;
use curt_core::varint;
use data_encoding::BASE64URL_NOPAD;

use super::position::Position;

/// Ranges that are kept of a producer: with more holes than that, its oldest are taken for closed.
const RANGES_MAX: usize = 1_024;

/// Numbers that were seen, by producer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen(BTreeMap<ProducerId, Ranges>);

/// Disjoint ranges `(after, last]` by `last`; `None` for a range that begins before all numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ranges(BTreeMap<u64, Option<u64>>);

impl Seen {
    /// Notes the record, and says whether it is new.
    pub(super) fn note(&mut self, position: &Position) -> bool {
        let ranges = self.0.entry(position.producer).or_default();
        ranges.note(position.previous, position.sequence)
    }

    /// `None` while a record is missing between others: what comes next may be it.
    pub(super) fn snapshot(&self) -> Option<String> {
        let mut bytes = Vec::with_capacity(self.0.len() * 10);
        let mut before = (0, 0);
        for (producer, ranges) in &self.0 {
            let last = ranges.only()?;
            varint::push(&mut bytes, producer.0.wrapping_sub(before.0));
            // Partitions of one spool have numbers that are close to each other.
            varint::push(&mut bytes, zigzag(last.wrapping_sub(before.1)));
            before = (producer.0, last);
        }
        Some(BASE64URL_NOPAD.encode(&bytes))
    }

    /// `None`: it is not a snapshot.
    pub(super) fn from_snapshot(text: &str) -> Option<Self> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        let mut bytes = bytes.as_slice();
        let mut seen = Self::default();
        let mut before = (0_u64, 0_u64);
        while !bytes.is_empty() {
            let producer = before.0.wrapping_add(varint::take(&mut bytes)?);
            let last = before.1.wrapping_add(unzigzag(varint::take(&mut bytes)?));
            seen.0
                .insert(ProducerId(producer), Ranges([(last, None)].into()));
            before = (producer, last);
        }
        Some(seen)
    }
}

impl Ranges {
    fn note(&mut self, after: Option<u64>, last: u64) -> bool {
        let is_new = !self.contains(last);
        self.cover(after.filter(|after| *after < last), last);
        while self.0.len() > RANGES_MAX {
            let Some((_, start)) = self.0.pop_first() else {
                break;
            };
            if let Some(mut next) = self.0.first_entry() {
                next.insert(start);
            }
        }
        is_new
    }

    fn contains(&self, number: u64) -> bool {
        let range = self.0.range(number..).next();
        range.is_some_and(|(_, after)| after.is_none_or(|after| after < number))
    }

    /// Adds `(after, last]`, put together with every range that it touches.
    fn cover(&mut self, mut after: Option<u64>, mut last: u64) {
        let from = after.unwrap_or(0);
        let touched: Vec<(u64, Option<u64>)> = self
            .0
            .range(from..)
            .take_while(|(_, start)| start.is_none_or(|start| start <= last))
            .map(|(end, start)| (*end, *start))
            .collect();
        for (end, start) in touched {
            self.0.remove(&end);
            last = last.max(end);
            after = match (after, start) {
                (Some(one), Some(other)) => Some(one.min(other)),
                _ => None,
            };
        }
        self.0.insert(last, after);
    }

    /// The last number, if nothing before it is missing.
    fn only(&self) -> Option<u64> {
        match self.0.first_key_value() {
            Some((last, None)) if self.0.len() == 1 => Some(*last),
            _ => None,
        }
    }
}

fn zigzag(number: u64) -> u64 {
    number << 1 ^ if number >> 63 == 1 { u64::MAX } else { 0 }
}

fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ if number & 1 == 1 { u64::MAX } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn position(producer: u64, previous: Option<u64>, sequence: u64) -> Position {
        Position {
            producer: ProducerId(producer),
            sequence,
            previous,
        }
    }

    #[test]
    fn a_producer_that_begins_again_adds_its_rest() {
        let mut seen = Seen::default();
        let mut note = |previous, sequence| seen.note(&position(1, previous, sequence));
        assert!(note(None, 10) && note(Some(10), 15) && note(Some(15), 20));
        assert!(!note(None, 15) && !note(Some(15), 20) && note(Some(20), 21));
        assert!(!note(None, 3), "before all that is known");
    }

    #[test]
    fn a_record_that_comes_late_is_new_and_no_snapshot_is_made_before() {
        let mut seen = Seen::default();
        assert!(seen.note(&position(1, None, 1)));
        assert!(seen.note(&position(1, Some(2), 3)));
        assert_eq!(seen.snapshot(), None);
        assert!(seen.note(&position(1, Some(1), 2)));
        assert!(!seen.note(&position(1, Some(1), 2)));
        assert!(seen.snapshot().is_some());
    }

    proptest! {
        /// Every record counts once, in whatever order and however often records come.
        #[test]
        fn delivery_in_any_order_and_any_number_is_exact(
            numbers in proptest::collection::btree_set(0_u64..500, 1..40),
            delivered in proptest::collection::vec((0_usize..40, 0_usize..3), 1..200),
        ) {
            let numbers: Vec<u64> = numbers.into_iter().collect();
            let record = |place: usize, producer| {
                position(producer, place.checked_sub(1).map(|before| numbers[before]), numbers[place])
            };
            let (mut seen, mut counted) = (Seen::default(), std::collections::HashSet::new());
            // The first of a run says that all before it is durable, so it comes first.
            for producer in 0..3 {
                assert!(seen.note(&record(0, producer)));
                counted.insert((0, producer));
            }
            for (place, producer) in delivered {
                let (place, producer) = (place % numbers.len(), producer as u64);
                prop_assert_eq!(seen.note(&record(place, producer)), counted.insert((place, producer)));
            }
            for place in 0..numbers.len() {
                for producer in 0..3 {
                    prop_assert_eq!(seen.note(&record(place, producer)), counted.insert((place, producer)));
                }
            }
            let snapshot = seen.snapshot().unwrap();
            prop_assert_eq!(Seen::from_snapshot(&snapshot), Some(seen));
        }

        #[test]
        fn snapshots_keep_any_numbers(numbers in proptest::collection::btree_map(any::<u64>(), any::<u64>(), 0..50)) {
            let mut seen = Seen::default();
            for (producer, last) in numbers {
                seen.note(&position(producer, None, last));
            }
            prop_assert_eq!(Seen::from_snapshot(&seen.snapshot().unwrap()), Some(seen));
        }
    }
}
