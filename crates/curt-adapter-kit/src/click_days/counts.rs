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
//! over all values stays exact. The *floor* is the most that a value without a place can have had. A value that gets a
//! place starts with it as its *credit*: what it may have had before, and counted as [`OTHER`]. So a count is exact while
//! its credit is 0, short by its credit at most otherwise, and never too high; and whoever has more than the floor, which
//! is at most a thousandth of all counts of the day, has a place.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use curt_core::click::OTHER;
use curt_core::limits::VALUES_PER_DAY_MAX;
use curt_core::{Day, Dimension, Rollup};

use crate::varint::{Damaged, push, take, take_counted};

const EXACT: u8 = 1;
const WITH_CREDIT: u8 = 2;
const HOURS: usize = 24;

/// The count of each hour.
pub(super) type Hours = [u64; HOURS];

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DayCounts<'a>(BTreeMap<u8, DimensionValues<'a>>);

#[derive(Debug, Default, PartialEq, Eq)]
struct DimensionValues<'a> {
    /// The most that a value which is not here can have counted on this day.
    floor: u64,
    by_text: BTreeMap<Cow<'a, str>, ValueCounts>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ValueCounts {
    /// What it may have counted before it got its place.
    credit: u64,
    hours: Hours,
}

impl ValueCounts {
    /// The most that it can have counted.
    fn count_max(&self) -> u64 {
        let counted = self
            .hours
            .iter()
            .fold(0, |sum: u64, count| sum.saturating_add(*count));
        counted.saturating_add(self.credit)
    }
}

impl DimensionValues<'_> {
    /// Keeps the values that may have counted most, and adds the others to [`OTHER`].
    fn merge_rare_values(&mut self) {
        let kept_max = VALUES_PER_DAY_MAX + usize::from(self.by_text.contains_key(OTHER));
        let excess = self.by_text.len().saturating_sub(kept_max);
        if excess == 0 {
            return;
        }
        let weights = self.by_text.iter().filter(|(text, _)| *text != OTHER);
        let mut lightest: Vec<_> = weights
            .map(|(text, value)| (value.count_max(), Reverse(text.clone())))
            .collect();
        lightest.select_nth_unstable(excess - 1);
        let mut others = self
            .by_text
            .get(OTHER)
            .map_or([0; HOURS], |other| other.hours);
        for (count_max, Reverse(text)) in lightest.drain(..excess) {
            self.floor = self.floor.max(count_max);
            let Some(value) = self.by_text.remove(&text) else {
                continue;
            };
            for (other, count) in others.iter_mut().zip(value.hours) {
                *other = other.saturating_add(count);
            }
        }
        self.by_text.entry(Cow::Borrowed(OTHER)).or_default().hours = others;
    }
}

impl<'a> DayCounts<'a> {
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, Damaged> {
        let mut counts = Self::default();
        let (version, mut rest) = split_version(bytes)?;
        while let Some((dimension, section)) = next_section(&mut rest)? {
            let mut values = DimensionValues::default();
            // Twice the same cannot be told apart from a fault: writing it back would make that final.
            let mut is_repeated = false;
            values.floor = for_each_value(version, section, |text, credit, hours| {
                let hours = *hours;
                let value = ValueCounts { credit, hours };
                is_repeated |= values.by_text.insert(Cow::Borrowed(text), value).is_some();
            })?;
            if is_repeated || counts.0.insert(dimension, values).is_some() {
                return Err(Damaged);
            }
        }
        Ok(counts)
    }

    /// Adds rollups of the day. All that belong together should come at once: only then values give way to others.
    pub(super) fn add(&mut self, day: Day, rollups: impl IntoIterator<Item = &'a Rollup>) {
        for sum in rollups.into_iter().filter(|sum| sum.count > 0) {
            let values = self.0.entry(sum.dimension as u8).or_default();
            let credit = match *sum.value == *OTHER {
                true => 0,
                false => values.floor,
            };
            let value = values
                .by_text
                .entry(Cow::Borrowed(&*sum.value))
                .or_insert_with(|| ValueCounts {
                    credit,
                    hours: Hours::default(),
                });
            let count = &mut value.hours[usize::from(day.hour_of(sum.hour))];
            *count = count.saturating_add(sum.count);
        }
        for values in self.0.values_mut() {
            values.merge_rare_values();
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let is_exact = |values: &DimensionValues<'_>| {
            values.floor == 0 && values.by_text.values().all(|value| value.credit == 0)
        };
        let version = match self.0.values().all(is_exact) {
            true => EXACT,
            false => WITH_CREDIT,
        };
        let mut bytes = vec![version];
        let mut section = Vec::new();
        for (dimension, values) in &self.0 {
            section.clear();
            if version == WITH_CREDIT {
                push(&mut section, values.floor);
            }
            for (text, value) in &values.by_text {
                put_value(&mut section, version, text, value);
            }
            bytes.push(*dimension);
            push(&mut bytes, section.len() as u64);
            bytes.extend_from_slice(&section);
        }
        bytes
    }
}

/// Shows each value of one dimension, rising.
pub(super) fn for_each_value_of<'a>(
    bytes: &'a [u8],
    dimension: Dimension,
    mut see: impl FnMut(&'a str, &Hours),
) -> Result<(), Damaged> {
    let (version, mut rest) = split_version(bytes)?;
    while let Some((number, section)) = next_section(&mut rest)? {
        if number == dimension as u8 {
            return for_each_value(version, section, |text, _, hours| see(text, hours)).map(drop);
        }
    }
    Ok(())
}

/// The version, and what follows it.
fn split_version(bytes: &[u8]) -> Result<(u8, &[u8]), Damaged> {
    match bytes.split_first() {
        Some((&version @ (EXACT | WITH_CREDIT), rest)) => Ok((version, rest)),
        _ => Err(Damaged),
    }
}

fn next_section<'a>(rest: &mut &'a [u8]) -> Result<Option<(u8, &'a [u8])>, Damaged> {
    let Some((&dimension, after)) = rest.split_first() else {
        return Ok(None);
    };
    *rest = after;
    let section = take_counted(rest)?;
    Ok(Some((dimension, section)))
}

/// Shows each value with its credit and counts; returns the floor.
fn for_each_value<'a>(
    version: u8,
    mut section: &'a [u8],
    mut see: impl FnMut(&'a str, u64, &Hours),
) -> Result<u64, Damaged> {
    let has_credit = version == WITH_CREDIT;
    let floor = match has_credit {
        true => take(&mut section)?,
        false => 0,
    };
    while !section.is_empty() {
        let value = std::str::from_utf8(take_counted(&mut section)?).map_err(|_| Damaged)?;
        let credit = match has_credit {
            true => take(&mut section)?,
            false => 0,
        };
        let mask = take(&mut section)?;
        if mask >> HOURS != 0 {
            return Err(Damaged);
        }
        let mut hours = [0; HOURS];
        for (hour, count) in hours.iter_mut().enumerate() {
            if mask >> hour & 1 == 1 {
                *count = take(&mut section)?;
            }
        }
        see(value, credit, &hours);
    }
    Ok(floor)
}

fn put_value(bytes: &mut Vec<u8>, version: u8, text: &str, value: &ValueCounts) {
    push(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
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
mod tests {
    use super::*;

    fn sum(hour: u8, dimension: Dimension, value: &str, count: u64) -> Rollup {
        Rollup {
            hour: Day::FIRST.hour(hour),
            dimension,
            value: value.into(),
            count,
        }
    }

    fn of(rollups: &[Rollup]) -> Vec<u8> {
        let mut counts = DayCounts::default();
        counts.add(Day::FIRST, rollups);
        counts.encode()
    }

    /// Stored counts outlive versions.
    #[test]
    fn the_stored_form_is_fixed() {
        let rollups = [
            sum(0, Dimension::Class, "human", 1),
            sum(23, Dimension::Class, "human", 300),
            sum(1, Dimension::Country, "DE", 2),
        ];
        let mut golden = vec![1, 0, 13, 5];
        golden.extend_from_slice(b"human");
        golden.extend_from_slice(&[0x81, 0x80, 0x80, 0x04, 1, 0xac, 0x02]);
        golden.extend_from_slice(&[1, 5, 2, b'D', b'E', 2, 2]);
        assert_eq!(of(&rollups), golden);
    }

    #[test]
    fn what_was_counted_is_read_back() {
        let rollups = [
            sum(3, Dimension::Referrer, "", 1),
            sum(3, Dimension::Referrer, &"x".repeat(300), u64::MAX),
            sum(9, Dimension::Class, "bot", 7),
        ];
        let bytes = of(&rollups);
        let decoded = DayCounts::decode(&bytes).unwrap();
        assert_eq!(decoded.encode(), bytes);
        let mut seen = Vec::new();
        for_each_value_of(&bytes, Dimension::Referrer, |value, hours| {
            seen.push((value.len(), hours[3]));
        })
        .unwrap();
        assert_eq!(seen, [(0, 1), (300, u64::MAX)]);
        for_each_value_of(&bytes, Dimension::Country, |_, _| panic!("never counted")).unwrap();
    }

    /// Every cut and every changed byte is either refused or read as something, and never ends the process.
    #[test]
    fn damage_is_survived() {
        let rollups = [
            sum(3, Dimension::Class, "human", 1 << 40),
            sum(4, Dimension::Country, "DE", 5),
        ];
        let bytes = of(&rollups);
        for end in 0..bytes.len() {
            let cut = DayCounts::decode(&bytes[..end]);
            assert!(cut.is_err() || end == 1 || bytes[end] == Dimension::Country as u8);
        }
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[place] ^= 1 << bit;
                if let Ok(counts) = DayCounts::decode(&other) {
                    assert_ne!(counts, DayCounts::decode(&bytes).unwrap());
                }
            }
        }
        assert_eq!(DayCounts::decode(&[]), Err(Damaged));
        assert_eq!(DayCounts::decode(&[3]), Err(Damaged));
    }

    /// The counts of a dimension by value, and the sum over all.
    fn read(bytes: &[u8]) -> (BTreeMap<String, u64>, u64) {
        let mut counts = BTreeMap::new();
        for_each_value_of(bytes, Dimension::Referrer, |value, hours| {
            counts.insert(value.to_owned(), hours.iter().sum());
        })
        .unwrap();
        let total = counts.values().sum();
        (counts, total)
    }

    #[test]
    fn invented_values_do_not_push_out_real_ones() {
        let junk = |window: u64, values: u64| -> Vec<Rollup> {
            let value = |n| sum(1, Dimension::Referrer, &format!("junk-{window}-{n}"), 1);
            (0..values).map(value).collect()
        };
        let add = |bytes: &[u8], rollups: &[Rollup]| {
            let mut counts = DayCounts::decode(bytes).unwrap();
            counts.add(Day::FIRST, rollups);
            counts.encode()
        };
        let mut bytes = add(&of(&[]), &junk(0, 1_000));
        let mut total = 1_000;
        for window in 1..20 {
            bytes = add(&bytes, &junk(window, 5_000));
            bytes = add(&bytes, &[sum(2, Dimension::Referrer, "news.example", 25)]);
            total += 5_025;
            let (counts, sum) = read(&bytes);
            assert_eq!(sum, total, "window {window}");
            assert!(counts.len() <= VALUES_PER_DAY_MAX + 1, "{}", counts.len());
            // The true count is 25 times the windows; the error is below a thousandth of all.
            let news = counts.get("news.example").copied().unwrap_or_default();
            assert!(
                news <= 25 * window && news + total / 1_000 >= 25 * window,
                "{news}"
            );
            let decoded = DayCounts::decode(&bytes).unwrap();
            let floor = decoded.0[&(Dimension::Referrer as u8)].floor;
            assert!(
                floor <= total / VALUES_PER_DAY_MAX as u64,
                "{floor} of {total}"
            );
        }
    }

    #[test]
    fn up_to_the_bound_every_count_is_exact() {
        let rollups: Vec<_> = (0..VALUES_PER_DAY_MAX)
            .map(|n| sum(1, Dimension::Referrer, &format!("v{n}"), 1 + n as u64))
            .collect();
        let bytes = of(&rollups);
        assert_eq!(bytes[0], EXACT);
        let (counts, _) = read(&bytes);
        assert!(!counts.contains_key(OTHER));
        assert_eq!(counts["v999"], 1_000);
        let more = sum(1, Dimension::Referrer, "one more", 1);
        let mut counts = DayCounts::decode(&bytes).unwrap();
        counts.add(Day::FIRST, [&more]);
        let bytes = counts.encode();
        assert_eq!(bytes[0], WITH_CREDIT);
        let decoded = DayCounts::decode(&bytes).unwrap();
        assert_eq!(decoded, counts);
        assert_eq!(read(&bytes).0[OTHER], 1, "one of the two with a count of 1");
    }
}
