use std::collections::BTreeMap;

use curt_core::ports::HourRange;
use curt_core::{ClickSubject, Day, Dimension, Rollup, SubjectDay};

use curt_adapter_kit::click_days::{Damaged, Series, StoredDay, estimate};

/// What is counted, by subject and day, in the form in which engines store it.
#[derive(Debug, Default)]
pub(super) struct Days(BTreeMap<(ClickSubject, Day), StoredDay>);

impl Days {
    pub(super) fn add(&mut self, new: &SubjectDay) -> Result<(), Damaged> {
        let place = (new.subject.clone(), new.day);
        let stored = self.0.entry(place).or_insert_with(StoredDay::empty);
        stored.merge(StoredDay::of(new).as_bytes())
    }

    pub(super) fn series(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
    ) -> Result<Vec<Rollup>, Damaged> {
        let mut series = Series::new(dimension, range);
        for (day, stored) in self.of(subject, Day::FIRST, None) {
            series.add(day, &stored.counts)?;
        }
        Ok(series.finish())
    }

    pub(super) fn visitors(
        &self,
        subject: &ClickSubject,
        from: Day,
        before: Day,
    ) -> Result<Vec<(Day, u64)>, Damaged> {
        let mut days = Vec::new();
        for (day, stored) in self.of(subject, from, Some(before)) {
            days.extend(estimate(&stored.visitors)?.map(|count| (day, count)));
        }
        Ok(days)
    }

    pub(super) fn purge(&mut self, before: Day, limit: usize) -> u64 {
        let old = self.0.keys().filter(|(_, day)| *day < before);
        let old: Vec<_> = old.take(limit).cloned().collect();
        for key in &old {
            self.0.remove(key);
        }
        old.len() as u64
    }

    pub(super) fn erase(&mut self, subject: &ClickSubject) -> u64 {
        let before = self.0.len();
        self.0.retain(|(of, _), _| of != subject);
        (before - self.0.len()) as u64
    }

    fn of(
        &self,
        subject: &ClickSubject,
        from: Day,
        before: Option<Day>,
    ) -> impl Iterator<Item = (Day, &StoredDay)> {
        self.0
            .range((subject.clone(), from)..)
            .take_while(move |((of, _), _)| of == subject)
            .map(|((_, day), stored)| (*day, stored))
            .take_while(move |(day, _)| before.is_none_or(|before| *day < before))
    }
}
