//! Counts as they lie in their bytes, without tables of their own.

use curt_core::Dimension;

use super::{EXACT, HOURS, Hours, WITH_CREDIT};
use crate::varint::{Damaged, take, take_counted};

/// Shows each value of one dimension, rising.
pub(in crate::click_days) fn for_each_value_of<'a>(
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

/// Shows what each value of one dimension counted in the hours of the mask, rising.
pub(in crate::click_days) fn for_each_sum_of<'a>(
    bytes: &'a [u8],
    dimension: Dimension,
    asked: u32,
    mut see: impl FnMut(&'a str, u64),
) -> Result<(), Damaged> {
    let (version, mut rest) = split_version(bytes)?;
    while let Some((number, section)) = next_section(&mut rest)? {
        if number == dimension as u8 {
            // Not by a table of hours: rankings over months read millions of counts.
            let mut sum = 0_u64;
            let add = |sum: &mut u64, hour: usize, count: u64| {
                if asked >> hour & 1 == 1 {
                    *sum = sum.saturating_add(count);
                }
            };
            let ended = |sum: &mut u64, text, _| see(text, std::mem::take(sum));
            return for_each_count(version, section, &mut sum, add, ended).map(drop);
        }
    }
    Ok(())
}

/// The version, and what follows it.
pub(super) fn split_version(bytes: &[u8]) -> Result<(u8, &[u8]), Damaged> {
    match bytes.split_first() {
        Some((&version @ (EXACT | WITH_CREDIT), rest)) => Ok((version, rest)),
        _ => Err(Damaged),
    }
}

pub(super) fn next_section<'a>(rest: &mut &'a [u8]) -> Result<Option<(u8, &'a [u8])>, Damaged> {
    let Some((&dimension, after)) = rest.split_first() else {
        return Ok(None);
    };
    *rest = after;
    let section = take_counted(rest)?;
    Ok(Some((dimension, section)))
}

/// Shows each value with its credit and counts; returns the floor.
pub(super) fn for_each_value<'a>(
    version: u8,
    section: &'a [u8],
    mut see: impl FnMut(&'a str, u64, &Hours),
) -> Result<u64, Damaged> {
    let mut hours = [0; HOURS];
    let add = |hours: &mut Hours, hour: usize, count| hours[hour] = count;
    let ended = |hours: &mut Hours, text, credit| see(text, credit, &std::mem::take(hours));
    for_each_count(version, section, &mut hours, add, ended)
}

/// Shows the counts of each value to `add`, by hour, and then the value with its credit to `ended`; returns the floor.
fn for_each_count<'a, T>(
    version: u8,
    mut section: &'a [u8],
    state: &mut T,
    add: impl Fn(&mut T, usize, u64),
    mut ended: impl FnMut(&mut T, &'a str, u64),
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
        let mut mask = take(&mut section)?;
        if mask >> HOURS != 0 {
            return Err(Damaged);
        }
        while mask != 0 {
            add(state, mask.trailing_zeros() as usize, take(&mut section)?);
            mask &= mask - 1;
        }
        ended(state, value, credit);
    }
    Ok(floor)
}
