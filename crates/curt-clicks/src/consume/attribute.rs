//! What is counted for a link counts for its owner, for its tags and for everything too.

use std::collections::{BTreeMap, HashMap};

use curt_core::{ClickSubject, Day, Dimension, Rollup, Sketch, SubjectDay, UnixMillis};

use crate::aggregate::AttributedDay;

/// The days of the aggregate, with those of all subjects that their clicks belonged to.
pub(super) fn attribute(aggregated: Vec<AttributedDay>) -> Vec<SubjectDay> {
    let mut groups = BTreeMap::<(ClickSubject, Day), Group<'_>>::new();
    for day in &aggregated {
        for subject in subjects_beyond(day) {
            let group = groups.entry((subject, day.counted.day)).or_default();
            group.add(&day.counted);
        }
    }
    let grouped: Vec<_> = groups
        .into_iter()
        .map(|(key, group)| group.into_day(key))
        .collect();
    let days = aggregated.into_iter().map(|day| day.counted);
    days.chain(grouped).collect()
}

/// Subjects other than its own that the day counts for.
fn subjects_beyond(day: &AttributedDay) -> Vec<ClickSubject> {
    let mut subjects = vec![ClickSubject::Everything];
    if let Some(owner) = day.owner {
        subjects.push(ClickSubject::Owner(owner));
        subjects.extend(day.tags.iter().map(|tag| ClickSubject::tag(owner, tag)));
    }
    // A link may have a tag in two spellings.
    subjects.sort_unstable();
    subjects.dedup();
    subjects
}

/// The days of several links, added up.
#[derive(Default)]
struct Group<'a> {
    counts: HashMap<(UnixMillis, Dimension, &'a str), u64>,
    visitors: Sketch,
}

impl<'a> Group<'a> {
    fn add(&mut self, day: &'a SubjectDay) {
        for sum in &day.rollups {
            let place = (sum.hour, sum.dimension, &*sum.value);
            let count = self.counts.entry(place).or_default();
            *count = count.saturating_add(sum.count);
        }
        self.visitors.merge(&day.visitors);
    }

    /// Frequent values come first: they should not be the ones for which there is no room.
    fn into_day(self, (subject, day): (ClickSubject, Day)) -> SubjectDay {
        let mut counts: Vec<_> = self.counts.into_iter().collect();
        counts.sort_unstable_by(|(place, count), (other, than)| {
            than.cmp(count).then_with(|| place.cmp(other))
        });
        let sum = |((hour, dimension, value), count): ((_, _, &str), u64)| Rollup {
            hour,
            dimension,
            value: value.into(),
            count,
        };
        SubjectDay {
            subject,
            day,
            rollups: counts.into_iter().map(sum).collect(),
            visitors: self.visitors,
        }
    }
}
