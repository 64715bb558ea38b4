use curt_core::{Sketch, SubjectDay};

use super::counts::{DayCounts, encode_rollups};
use crate::varint::Damaged;

/// Everything that was counted for a subject on a day, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDay {
    pub counts: Vec<u8>,
    pub visitors: Vec<u8>,
}

impl StoredDay {
    pub fn empty() -> Self {
        Self {
            counts: DayCounts::default().encode(),
            visitors: Sketch::new().to_bytes(),
        }
    }

    pub fn of(new: &SubjectDay) -> Self {
        Self {
            counts: encode_rollups(new.day, &new.rollups),
            visitors: new.visitors.to_bytes(),
        }
    }

    /// Adds what was counted elsewhere for the same subject on the same day.
    pub fn merge(&mut self, other: DayBytes<'_>) -> Result<(), Damaged> {
        let ours = DayCounts::decode(&self.counts)?;
        let counts = ours.merge(DayCounts::decode(other.counts)?).encode();
        let mut visitors = Sketch::from_bytes(&self.visitors).map_err(|_| Damaged)?;
        visitors.merge(&Sketch::from_bytes(other.visitors).map_err(|_| Damaged)?);
        *self = Self {
            counts,
            visitors: visitors.to_bytes(),
        };
        Ok(())
    }

    pub fn as_bytes(&self) -> DayBytes<'_> {
        DayBytes {
            counts: &self.counts,
            visitors: &self.visitors,
        }
    }
}

/// A [`StoredDay`] that lies in something larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayBytes<'a> {
    pub counts: &'a [u8],
    pub visitors: &'a [u8],
}

impl DayBytes<'_> {
    pub fn to_stored(self) -> StoredDay {
        StoredDay {
            counts: self.counts.to_vec(),
            visitors: self.visitors.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    use curt_core::ports::HourRange;
    use curt_core::{ClickSubject, Day, Dimension, Rollup, UnixMillis};

    use crate::click_days::{Ranking, Series, estimate};

    fn day_of(values: &[(&str, u64)], visitors: u64) -> SubjectDay {
        let day = Day::of(UnixMillis(1_790_000_000_000));
        let rollups = values.iter().map(|(value, count)| Rollup {
            hour: day.hour(u8::try_from(count % 24).unwrap()),
            dimension: Dimension::Country,
            value: (*value).into(),
            count: *count,
        });
        let mut sketch = Sketch::new();
        (0..visitors)
            .for_each(|visitor| sketch.insert(visitor.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        SubjectDay {
            subject: ClickSubject::Everything,
            day,
            rollups: rollups.collect(),
            visitors: sketch,
        }
    }

    #[test]
    fn mutated_days_are_refused_or_say_the_same_after_a_rewrite() {
        let few = day_of(&[("DE", 3), ("SE", 40_000)], 2);
        let many: Vec<String> = (0..1_200).map(|value| format!("v{value}")).collect();
        let many: Vec<(&str, u64)> = many
            .iter()
            .zip(1..)
            .map(|(value, count)| (value.as_str(), count))
            .collect();
        let many = day_of(&many, 0);
        let empty = StoredDay::empty();
        let samples = [empty.clone(), StoredDay::of(&few), StoredDay::of(&many)];
        let words: [&[u8]; 4] = [
            b"\x80\x00",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x01\x06\x02DE",
            b"\xff\xff\x7f",
        ];
        let counts = samples.map(|day| day.counts);
        curt_testkit::fuzz::Fuzz::new("rollup", counts)
            .with_words(words)
            .run(|input| {
                let stored = StoredDay {
                    counts: input.to_vec(),
                    visitors: Sketch::new().to_bytes(),
                };
                let rewrite = |stored: &StoredDay| {
                    let mut again = empty.clone();
                    again.merge(stored.as_bytes()).map(|()| again)
                };
                let Ok(mut again) = rewrite(&stored) else {
                    return false;
                };
                assert_eq!(report(&again.counts), report(&stored.counts));
                assert_eq!(rewrite(&again).as_ref(), Ok(&again), "rewritten twice");
                let more = StoredDay::of(&few);
                assert!(again.merge(more.as_bytes()).is_ok(), "cannot be added to");
                true
            });
    }

    fn report(counts: &[u8]) -> (Vec<(UnixMillis, Arc<str>, u64)>, u64) {
        let day = Day::of(UnixMillis(1_790_000_000_000));
        let mut series = Series::new(Dimension::Country, HourRange::ALL);
        let mut ranking = Ranking::new(Dimension::Country, HourRange::ALL);
        series.add(day, counts).expect("a series");
        ranking.add(day, counts).expect("a ranking");
        let mut rollups: Vec<_> = series
            .finish()
            .into_iter()
            .map(|sum| (sum.hour, sum.value, sum.count))
            .collect();
        rollups.sort();
        (rollups, ranking.finish(10).total())
    }

    #[test]
    fn mutated_sketches_are_refused_or_estimate_the_same_after_a_merge() {
        let sketches =
            [0, 1, 500, 20_000].map(|visitors| day_of(&[], visitors).visitors.to_bytes());
        curt_testkit::fuzz::Fuzz::new("sketch", sketches).run(|input| {
            let Ok(estimated) = estimate(input) else {
                return false;
            };
            let stored = StoredDay {
                counts: StoredDay::empty().counts,
                visitors: input.to_vec(),
            };
            let mut again = StoredDay::empty();
            again.merge(stored.as_bytes()).expect("was read");
            assert_eq!(estimate(&again.visitors), Ok(estimated));
            true
        });
    }
}
