//! Everything that was counted for one subject on one day, as one value.
//!
//! ```text
//! version 1 · for each dimension, rising: number · bytes that follow ·
//!             for each value, rising: length · text · hours (a bit each, the lowest is hour 0) · a count per hour
//! version 2 · for each dimension, rising: number · bytes that follow · floor ·
//!             for each value, rising: length · text · credit · hours · a count per hour
//! ```
//! All numbers but the version and the dimension are varints. Reading one dimension skips the others. Version 2 is written
//! where values have had to give way; version 1 is version 2 with zeros.
//!
//! # Too many values
//! A dimension keeps [`VALUES_PER_DAY_MAX`] values: the heavy hitters, whatever came first (Space-Saving, with the merge of
//! Agarwal et al., "Mergeable Summaries"). What the others counted is added to [`OTHER`], hour by hour, so that the sum
//! over all values stays exact. The *floor* is the most that a value without a place can have had. Where two counts
//! of a day are merged, a value that only one of them has may have had up to the other's floor there: that is its *credit*,
//! counted as [`OTHER`]. So a count is exact while its credit is 0, short by its credit at most otherwise, and never too
//! high; and a value that has more than the floor, which is at most a thousandth of all counts of the day, has a place.

mod read;

use std::cmp::Reverse;
use std::iter;

use curt_core::click::OTHER;
use curt_core::limits::VALUES_PER_DAY_MAX;
use curt_core::{Day, Rollup};

use crate::varint::{Damaged, push};

pub(super) use read::{for_each_sum_of, for_each_value_of};
use read::{for_each_value, next_section, split_version};

const EXACT: u8 = 1;
const WITH_CREDIT: u8 = 2;
const HOURS: usize = 24;

/// The count of each hour.
pub(super) type Hours = [u64; HOURS];

/// Dimensions by their number.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DayCounts<'a>(Vec<DimensionValues<'a>>);

#[derive(Debug, Default, PartialEq, Eq)]
struct DimensionValues<'a> {
    number: u8,
    /// The most that a value which is not here can have counted on this day.
    floor: u64,
    /// By text.
    values: Vec<ValueCounts<'a>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ValueCounts<'a> {
    text: &'a str,
    /// What it may have counted while it had no place.
    credit: u64,
    hours: Hours,
}

impl ValueCounts<'_> {
    /// The most that it can have counted.
    fn count_max(&self) -> u64 {
        let counted = self
            .hours
            .iter()
            .fold(0, |sum: u64, count| sum.saturating_add(*count));
        counted.saturating_add(self.credit)
    }

    fn add_hours(&mut self, hours: &Hours) {
        for (sum, count) in self.hours.iter_mut().zip(hours) {
            *sum = sum.saturating_add(*count);
        }
    }

    /// Adds what a side whose floor is this may have counted without telling of it.
    fn add_credit(&mut self, floor: u64) {
        if self.text != OTHER {
            self.credit = self.credit.saturating_add(floor);
        }
    }
}

impl<'a> DimensionValues<'a> {
    fn merge(self, other: Self) -> Self {
        let floors = (self.floor, other.floor);
        let mut values = Vec::with_capacity(self.values.len().max(other.values.len()));
        let mut theirs = other.values.into_iter().peekable();
        for mut our in self.values {
            while let Some(mut their) = theirs.next_if(|their| their.text < our.text) {
                their.add_credit(floors.0);
                values.push(their);
            }
            match theirs.next_if(|their| their.text == our.text) {
                Some(their) => {
                    our.add_hours(&their.hours);
                    our.credit = our.credit.saturating_add(their.credit);
                }
                None => our.add_credit(floors.1),
            }
            values.push(our);
        }
        for mut their in theirs {
            their.add_credit(floors.0);
            values.push(their);
        }
        let mut merged = Self {
            number: self.number,
            floor: floors.0.saturating_add(floors.1),
            values,
        };
        merged.merge_rare_values();
        merged
    }

    /// Keeps the values that may have counted most, and adds the others to [`OTHER`].
    fn merge_rare_values(&mut self) {
        let place_of_other =
            |values: &[ValueCounts<'_>]| values.binary_search_by(|value| value.text.cmp(OTHER));
        let has_other = place_of_other(&self.values).is_ok();
        let kept_max = VALUES_PER_DAY_MAX + usize::from(has_other);
        let excess = self.values.len().saturating_sub(kept_max);
        if excess == 0 {
            return;
        }
        let weights = self.values.iter().filter(|value| value.text != OTHER);
        let mut lightest: Vec<_> = weights
            .map(|value| (value.count_max(), Reverse(value.text)))
            .collect();
        let (_, heaviest_rare, _) = lightest.select_nth_unstable(excess - 1);
        let heaviest_rare = *heaviest_rare;
        let mut rare = Hours::default();
        self.floor = self.floor.max(heaviest_rare.0);
        self.values.retain(|value| {
            let is_kept =
                value.text == OTHER || (value.count_max(), Reverse(value.text)) > heaviest_rare;
            if !is_kept {
                for (sum, count) in rare.iter_mut().zip(value.hours) {
                    *sum = sum.saturating_add(count);
                }
            }
            is_kept
        });
        let place = place_of_other(&self.values).unwrap_or_else(|place| {
            let other = ValueCounts {
                text: OTHER,
                ..ValueCounts::default()
            };
            self.values.insert(place, other);
            place
        });
        self.values[place].add_hours(&rare);
    }
}

impl<'a> DayCounts<'a> {
    /// Counts rollups of the day, which may name a value of an hour more than once.
    pub(super) fn of(day: Day, rollups: &'a [Rollup]) -> Self {
        let rollups = sort_rollups(rollups);
        let dimensions = rollups.chunk_by(|one, next| one.dimension == next.dimension);
        let counts = dimensions.map(|rollups| {
            let values = rollups.chunk_by(|one, next| one.value == next.value);
            let mut counted = DimensionValues {
                number: rollups[0].dimension as u8,
                floor: 0,
                values: values.map(|same| count_value(day, same)).collect(),
            };
            counted.merge_rare_values();
            counted
        });
        Self(counts.collect())
    }

    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, Damaged> {
        let mut counts = Vec::<DimensionValues<'_>>::new();
        let (version, mut rest) = split_version(bytes)?;
        while let Some((number, section)) = next_section(&mut rest)? {
            let mut values = Vec::<ValueCounts<'_>>::new();
            // In another order, or twice, they cannot be told apart from a fault: writing it back would make that final.
            let mut is_rising = counts.last().is_none_or(|before| before.number < number);
            let floor = for_each_value(version, section, |text, credit, hours| {
                is_rising &= values.last().is_none_or(|before| before.text < text);
                let hours = *hours;
                values.push(ValueCounts {
                    text,
                    credit,
                    hours,
                });
            })?;
            if !is_rising {
                return Err(Damaged);
            }
            counts.push(DimensionValues {
                number,
                floor,
                values,
            });
        }
        Ok(Self(counts))
    }

    /// Adds up two counts of the same day.
    pub(super) fn merge(self, other: Self) -> Self {
        let mut merged = Vec::with_capacity(self.0.len().max(other.0.len()));
        let mut theirs = other.0.into_iter().peekable();
        for our in self.0 {
            merged.extend(iter::from_fn(|| {
                theirs.next_if(|their| their.number < our.number)
            }));
            merged.push(match theirs.next_if(|their| their.number == our.number) {
                Some(their) => our.merge(their),
                None => our,
            });
        }
        merged.extend(theirs);
        Self(merged)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let is_exact = |values: &DimensionValues<'_>| {
            values.floor == 0 && values.values.iter().all(|value| value.credit == 0)
        };
        let version = match self.0.iter().all(is_exact) {
            true => EXACT,
            false => WITH_CREDIT,
        };
        let mut bytes = vec![version];
        let mut section = Vec::new();
        for dimension in &self.0 {
            section.clear();
            if version == WITH_CREDIT {
                push(&mut section, dimension.floor);
            }
            for value in &dimension.values {
                put_value(&mut section, version, value);
            }
            bytes.push(dimension.number);
            push(&mut bytes, section.len() as u64);
            bytes.extend_from_slice(&section);
        }
        bytes
    }
}

/// Encodes the counts of rollups of the day, as [`DayCounts::of`] would: most subjects of a window have few values, which
/// need no tables.
pub(super) fn encode_rollups(day: Day, rollups: &[Rollup]) -> Vec<u8> {
    if rollups.len() > VALUES_PER_DAY_MAX {
        return DayCounts::of(day, rollups).encode();
    }
    let sorted = sort_rollups(rollups);
    let mut bytes = Vec::with_capacity(16 * (1 + sorted.len()));
    bytes.push(EXACT);
    let mut section = Vec::with_capacity(bytes.capacity());
    for of_dimension in sorted.chunk_by(|one, next| one.dimension == next.dimension) {
        section.clear();
        for same in of_dimension.chunk_by(|one, next| one.value == next.value) {
            put_value(&mut section, EXACT, &count_value(day, same));
        }
        bytes.push(of_dimension[0].dimension as u8);
        push(&mut bytes, section.len() as u64);
        bytes.extend_from_slice(&section);
    }
    bytes
}

/// By dimension and value, without those that counted nothing.
fn sort_rollups(rollups: &[Rollup]) -> Vec<&Rollup> {
    let mut rollups: Vec<&Rollup> = rollups.iter().filter(|sum| sum.count > 0).collect();
    rollups.sort_unstable_by_key(|sum| (sum.dimension as u8, &*sum.value));
    rollups
}

/// Adds up rollups of one value.
fn count_value<'a>(day: Day, rollups: &[&'a Rollup]) -> ValueCounts<'a> {
    let mut counts = ValueCounts {
        text: &rollups[0].value,
        ..ValueCounts::default()
    };
    for sum in rollups {
        let count = &mut counts.hours[usize::from(day.hour_of(sum.hour))];
        *count = count.saturating_add(sum.count);
    }
    counts
}

fn put_value(bytes: &mut Vec<u8>, version: u8, value: &ValueCounts<'_>) {
    push(bytes, value.text.len() as u64);
    bytes.extend_from_slice(value.text.as_bytes());
    if version == WITH_CREDIT {
        push(bytes, value.credit);
    }
    let counted = value
        .hours
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0);
    let mask = counted.clone().fold(0, |mask, (hour, _)| mask | 1 << hour);
    push(bytes, mask);
    for (_, count) in counted {
        push(bytes, *count);
    }
}

#[cfg(test)]
mod tests;
