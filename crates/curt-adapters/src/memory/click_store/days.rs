use std::collections::BTreeMap;

use curt_core::click::OTHER;
use curt_core::limits::VALUES_PER_DAY_MAX;
use curt_core::ports::HourRange;
use curt_core::{ClickSubject, ClickSum, Day, Dimension, Sketch, SubjectDay};

/// What is counted, by subject and day.
#[derive(Debug, Default)]
pub(super) struct Days(BTreeMap<(ClickSubject, Day), Counted>);

#[derive(Debug, Default)]
struct Counted {
    counts: BTreeMap<Dimension, Values>,
    visitors: Sketch,
}

/// Counts of each hour, by value.
type Values = BTreeMap<Box<str>, [u64; 24]>;

impl Days {
    pub(super) fn add(&mut self, new: SubjectDay) {
        let day = new.day;
        let counted = self.0.entry((new.subject, day)).or_default();
        for sum in new.sums.into_iter().filter(|sum| sum.count > 0) {
            let values = counted.counts.entry(sum.dimension).or_default();
            let counts = values.entry(kept_value(values, sum.value)).or_default();
            let count = &mut counts[usize::from(day.hour_of(sum.hour))];
            *count = count.saturating_add(sum.count);
        }
        counted.visitors.merge(&new.visitors);
    }

    pub(super) fn series(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
    ) -> Vec<ClickSum> {
        let mut sums = Vec::new();
        for (day, counted) in self.of(subject, Day::FIRST, None) {
            let Some(values) = counted.counts.get(&dimension) else {
                continue;
            };
            for hour in (0..24).filter(|hour| range.contains(day.hour(*hour))) {
                let of_hour = |counts: &[u64; 24]| counts[usize::from(hour)];
                let counted = values.iter().filter(|(_, counts)| of_hour(counts) > 0);
                sums.extend(counted.map(|(value, counts)| ClickSum {
                    hour: day.hour(hour),
                    dimension,
                    value: value.clone(),
                    count: of_hour(counts),
                }));
            }
        }
        sums
    }

    pub(super) fn visitors(
        &self,
        subject: &ClickSubject,
        from: Day,
        before: Day,
    ) -> Vec<(Day, u64)> {
        self.of(subject, from, Some(before))
            .filter(|(_, counted)| !counted.visitors.is_empty())
            .map(|(day, counted)| (day, counted.visitors.estimate()))
            .collect()
    }

    pub(super) fn purge(&mut self, before: Day, limit: usize) -> u64 {
        let old = self.0.keys().filter(|(_, day)| *day < before);
        let old: Vec<_> = old.take(limit).cloned().collect();
        for key in &old {
            self.0.remove(key);
        }
        old.len() as u64
    }

    fn of(
        &self,
        subject: &ClickSubject,
        from: Day,
        before: Option<Day>,
    ) -> impl Iterator<Item = (Day, &Counted)> {
        self.0
            .range((subject.clone(), from)..)
            .take_while(move |((of, _), _)| of == subject)
            .map(|((_, day), counted)| (*day, counted))
            .take_while(move |(day, _)| before.is_none_or(|before| *day < before))
    }
}

fn kept_value(values: &Values, value: Box<str>) -> Box<str> {
    let kept = values.len() - usize::from(values.contains_key(OTHER));
    if kept < VALUES_PER_DAY_MAX || values.contains_key(&value) {
        value
    } else {
        OTHER.into()
    }
}
