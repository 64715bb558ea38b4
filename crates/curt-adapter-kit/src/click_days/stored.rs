use curt_core::{Sketch, SubjectDay};

use super::counts::DayCounts;
use crate::varint::Damaged;

/// A day as an engine stores it: in two columns.
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

    /// The day with everything that is new about it.
    pub fn plus<'a>(
        &'a self,
        news: impl IntoIterator<Item = &'a SubjectDay>,
    ) -> Result<Self, Damaged> {
        let mut counts = DayCounts::decode(&self.counts)?;
        let mut visitors = Sketch::from_bytes(&self.visitors).map_err(|_| Damaged)?;
        for new in news {
            counts.add(new.day, &new.rollups);
            visitors.merge(&new.visitors);
        }
        Ok(Self {
            counts: counts.encode(),
            visitors: visitors.to_bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
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
        let few = [day_of(&[("DE", 3), ("SE", 40_000)], 2)];
        let many: Vec<String> = (0..1_200).map(|value| format!("v{value}")).collect();
        let many: Vec<(&str, u64)> = many
            .iter()
            .zip(1..)
            .map(|(value, count)| (value.as_str(), count))
            .collect();
        let many = [day_of(&many, 0)];
        let empty = StoredDay::empty();
        let samples = [
            empty.clone(),
            empty.plus(&few).unwrap(),
            empty.plus(&many).unwrap(),
        ];
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
                let Ok(again) = stored.plus([]) else {
                    return false;
                };
                assert_eq!(report(&again.counts), report(&stored.counts));
                assert_eq!(again.plus([]), Ok(again.clone()), "rewritten twice");
                assert!(again.plus(&few).is_ok(), "cannot be added to");
                true
            });
    }

    fn report(counts: &[u8]) -> (Vec<(UnixMillis, Box<str>, u64)>, u64) {
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
            let again = stored.plus([]).expect("was read");
            assert_eq!(estimate(&again.visitors), Ok(estimated));
            true
        });
    }
}
