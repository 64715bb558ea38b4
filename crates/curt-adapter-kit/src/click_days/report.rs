//! Reports from days, which come in their order.

use curt_core::ports::{HourRange, Top};
use curt_core::{Day, Dimension, Rollup, Sketch};
use hashbrown::HashMap;

use super::counts::{self, Hours};
use crate::varint::Damaged;

/// The rollups of one dimension by hour and then value.
pub struct Series {
    dimension: Dimension,
    range: HourRange,
    rollups: Vec<Rollup>,
}

impl Series {
    pub fn new(dimension: Dimension, range: HourRange) -> Self {
        Self {
            dimension,
            range,
            rollups: Vec::new(),
        }
    }

    pub fn add(&mut self, day: Day, bytes: &[u8]) -> Result<(), Damaged> {
        let asked = hours_asked(self.range, day);
        let first = self.rollups.len();
        counts::for_each_value_of(bytes, self.dimension, |value, hours| {
            let counted = hours_of(asked, hours).filter(|(_, count)| *count > 0);
            self.rollups.extend(counted.map(|(hour, count)| Rollup {
                hour: day.hour(hour),
                dimension: self.dimension,
                value: value.into(),
                count,
            }));
        })?;
        // Values rise already, so a stable sort by hour is all that is missing.
        self.rollups[first..].sort_by_key(|sum| sum.hour);
        Ok(())
    }

    pub fn finish(self) -> Vec<Rollup> {
        self.rollups
    }
}

/// The rollups of one dimension by value.
pub struct Ranking {
    dimension: Dimension,
    range: HourRange,
    counts: HashMap<Box<str>, u64>,
}

impl Ranking {
    pub fn new(dimension: Dimension, range: HourRange) -> Self {
        Self {
            dimension,
            range,
            counts: HashMap::new(),
        }
    }

    pub fn add(&mut self, day: Day, bytes: &[u8]) -> Result<(), Damaged> {
        let asked = hours_asked(self.range, day);
        counts::for_each_sum_of(bytes, self.dimension, asked, |value, new| {
            if new == 0 {
                return;
            }
            match self.counts.get_mut(value) {
                Some(count) => *count = count.saturating_add(new),
                None => drop(self.counts.insert(value.into(), new)),
            }
        })
    }

    pub fn finish(self, limit: usize) -> Top {
        Top::of(self.counts, limit)
    }
}

/// How many came on a day; `None`: nobody did.
pub fn estimate(visitors: &[u8]) -> Result<Option<u64>, Damaged> {
    let sketch = Sketch::from_bytes(visitors).map_err(|_| Damaged)?;
    Ok((!sketch.is_empty()).then(|| sketch.estimate()))
}

/// A bit for each hour of the day that the range contains.
fn hours_asked(range: HourRange, day: Day) -> u32 {
    (0..24)
        .filter(|hour| range.contains(day.hour(*hour)))
        .fold(0, |mask, hour| mask | 1 << hour)
}

fn hours_of(asked: u32, hours: &Hours) -> impl Iterator<Item = (u8, u64)> {
    (0..24_u8)
        .zip(hours)
        .filter(move |(hour, _)| asked >> hour & 1 == 1)
        .map(|(hour, count)| (hour, *count))
}
