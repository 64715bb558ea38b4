//! Everything that was counted for one subject on one day, as one value.
//!
//! ```text
//! version 1 · for each dimension, rising: number · bytes that follow ·
//!             for each value, rising: length · text · hours (a bit each, the lowest is hour 0) · a count per hour
//! ```
//! All numbers but the version and the dimension are varints. Reading one dimension skips the others.

use std::borrow::Cow;
use std::collections::BTreeMap;

use curt_core::click::OTHER;
use curt_core::limits::VALUES_PER_DAY_MAX;
use curt_core::{ClickSum, Day, Dimension};

const VERSION: u8 = 1;
const HOURS: usize = 24;

/// The bytes are not what [`DayCounts::encode`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are not the counts of a day")]
pub(crate) struct Damaged;

/// The count of each hour.
pub(super) type Hours = [u64; HOURS];

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DayCounts<'a>(BTreeMap<u8, Values<'a>>);

type Values<'a> = BTreeMap<Cow<'a, str>, Hours>;

impl<'a> DayCounts<'a> {
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, Damaged> {
        let mut counts = Self::default();
        let mut rest = sections(bytes)?;
        while let Some((dimension, section)) = next_section(&mut rest)? {
            let values = counts.0.entry(dimension).or_default();
            each_value(section, |value, hours| {
                values.insert(Cow::Borrowed(value), *hours);
            })?;
        }
        Ok(counts)
    }

    pub(super) fn add(&mut self, day: Day, sum: &'a ClickSum) {
        if sum.count == 0 {
            return;
        }
        let values = self.0.entry(sum.dimension as u8).or_default();
        let kept = values.len() - usize::from(values.contains_key(OTHER));
        let has_room = kept < VALUES_PER_DAY_MAX || values.contains_key(&*sum.value);
        let value = if has_room { &*sum.value } else { OTHER };
        let hours = values.entry(Cow::Borrowed(value)).or_default();
        let count = &mut hours[usize::from(day.hour_of(sum.hour))];
        *count = count.saturating_add(sum.count);
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        let mut section = Vec::new();
        for (dimension, values) in &self.0 {
            section.clear();
            for (value, hours) in values {
                put_value(&mut section, value, hours);
            }
            bytes.push(*dimension);
            put(&mut bytes, section.len() as u64);
            bytes.extend_from_slice(&section);
        }
        bytes
    }
}

/// Shows each value of one dimension, rising.
pub(super) fn each_of<'a>(
    bytes: &'a [u8],
    dimension: Dimension,
    see: impl FnMut(&'a str, &Hours),
) -> Result<(), Damaged> {
    let mut rest = sections(bytes)?;
    while let Some((number, section)) = next_section(&mut rest)? {
        if number == dimension as u8 {
            return each_value(section, see);
        }
    }
    Ok(())
}

fn sections(bytes: &[u8]) -> Result<&[u8], Damaged> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
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

fn each_value<'a>(
    mut section: &'a [u8],
    mut see: impl FnMut(&'a str, &Hours),
) -> Result<(), Damaged> {
    while !section.is_empty() {
        let value = std::str::from_utf8(take_counted(&mut section)?).map_err(|_| Damaged)?;
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
        see(value, &hours);
    }
    Ok(())
}

fn put_value(bytes: &mut Vec<u8>, value: &str, hours: &Hours) {
    put(bytes, value.len() as u64);
    bytes.extend_from_slice(value.as_bytes());
    let counted = hours.iter().enumerate().filter(|(_, count)| **count > 0);
    let mask = counted.clone().fold(0, |mask, (hour, _)| mask | 1 << hour);
    put(bytes, mask);
    for (_, count) in counted {
        put(bytes, *count);
    }
}

/// Seven bits per byte, the lowest first; all bytes but the last have the eighth set.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Result<u64, Damaged> {
    // Nearly all counts of an hour are this small, and a report reads hundreds of thousands of them.
    if let [byte @ ..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Ok(u64::from(*byte));
    }
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(Damaged)?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return Err(Damaged);
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Damaged)
}

/// As many bytes as the number before them says.
fn take_counted<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Damaged> {
    let count = usize::try_from(take(bytes)?).map_err(|_| Damaged)?;
    let (taken, rest) = bytes.split_at_checked(count).ok_or(Damaged)?;
    *bytes = rest;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(hour: u8, dimension: Dimension, value: &str, count: u64) -> ClickSum {
        ClickSum {
            hour: Day::FIRST.hour(hour),
            dimension,
            value: value.into(),
            count,
        }
    }

    fn of(sums: &[ClickSum]) -> Vec<u8> {
        let mut counts = DayCounts::default();
        for sum in sums {
            counts.add(Day::FIRST, sum);
        }
        counts.encode()
    }

    /// Stored counts outlive versions.
    #[test]
    fn the_stored_form_is_fixed() {
        let sums = [
            sum(0, Dimension::Kind, "human", 1),
            sum(23, Dimension::Kind, "human", 300),
            sum(1, Dimension::Country, "DE", 2),
        ];
        let mut golden = vec![1, 0, 13, 5];
        golden.extend_from_slice(b"human");
        golden.extend_from_slice(&[0x81, 0x80, 0x80, 0x04, 1, 0xac, 0x02]);
        golden.extend_from_slice(&[1, 5, 2, b'D', b'E', 2, 2]);
        assert_eq!(of(&sums), golden);
    }

    #[test]
    fn what_was_counted_is_read_back() {
        let sums = [
            sum(3, Dimension::Referrer, "", 1),
            sum(3, Dimension::Referrer, &"x".repeat(300), u64::MAX),
            sum(9, Dimension::Kind, "bot", 7),
        ];
        let bytes = of(&sums);
        let decoded = DayCounts::decode(&bytes).unwrap();
        assert_eq!(decoded.encode(), bytes);
        let mut seen = Vec::new();
        each_of(&bytes, Dimension::Referrer, |value, hours| {
            seen.push((value.len(), hours[3]));
        })
        .unwrap();
        assert_eq!(seen, [(0, 1), (300, u64::MAX)]);
        each_of(&bytes, Dimension::Country, |_, _| panic!("never counted")).unwrap();
    }

    /// Every cut and every changed byte is either refused or read as something, and never ends the process.
    #[test]
    fn damage_is_survived() {
        let sums = [
            sum(3, Dimension::Kind, "human", 1 << 40),
            sum(4, Dimension::Country, "DE", 5),
        ];
        let bytes = of(&sums);
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
        assert_eq!(DayCounts::decode(&[2]), Err(Damaged));
    }
}
