//! What is counted for a link counts for its owner, for its tags and for everything too.

use std::collections::{BTreeMap, HashMap};

use curt_core::ports::LinkStore;
use curt_core::{
    ClickSubject, ClickSum, Day, Dimension, Link, LinkId, OwnerId, PortResult, Sketch, SubjectDay,
    UnixMillis, VisitRow, Visited,
};

use crate::fold::Folded;

type Links = HashMap<LinkId, Option<Link>>;

/// The days of the fold, with those of all subjects that a link belongs to, and its visits with who they belong to.
pub(super) async fn attribute(
    links: &dyn LinkStore,
    folded: &Folded,
) -> PortResult<(Vec<SubjectDay>, Vec<VisitRow>)> {
    let mut known = Links::new();
    for id in folded.days.iter().filter_map(link_of) {
        if !known.contains_key(id) {
            known.insert(id.clone(), links.get(id).await?);
        }
    }
    let mut groups = BTreeMap::<(ClickSubject, Day), Group<'_>>::new();
    for day in &folded.days {
        for subject in subjects_beyond(day, &known) {
            groups.entry((subject, day.day)).or_default().add(day);
        }
    }
    let mut days = folded.days.clone();
    days.extend(groups.into_iter().map(|(key, group)| group.into_day(key)));
    let visits = folded.visits.iter().map(|visit| owned(visit, &known));
    Ok((days, visits.collect()))
}

fn link_of(day: &SubjectDay) -> Option<&LinkId> {
    match &day.subject {
        ClickSubject::Link(id) => Some(id),
        _ => None,
    }
}

/// Subjects other than its own that the day counts for. A link that is gone has no owner any more.
fn subjects_beyond(day: &SubjectDay, known: &Links) -> Vec<ClickSubject> {
    let mut subjects = vec![ClickSubject::Everything];
    let link = link_of(day).and_then(|id| known.get(id)?.as_ref());
    if let Some((link, owner)) = link.and_then(|link| Some((link, owner_of(link)?))) {
        subjects.push(ClickSubject::Owner(owner));
        subjects.extend(link.tags.iter().map(|tag| ClickSubject::tag(owner, tag)));
    }
    // A link may have a tag in two spellings.
    subjects.sort_unstable();
    subjects.dedup();
    subjects
}

fn owner_of(link: &Link) -> Option<OwnerId> {
    (link.owner != OwnerId::ANONYMOUS).then_some(link.owner)
}

fn owned(visit: &VisitRow, known: &Links) -> VisitRow {
    let link = match &visit.visited {
        Visited::Link(id) => known.get(id).and_then(Option::as_ref),
        Visited::Absent(_) | Visited::BaseUrl => None,
    };
    VisitRow {
        owner: link.and_then(owner_of),
        tags: link.map_or_else(Vec::new, |link| link.tags.clone()),
        ..visit.clone()
    }
}

/// The days of several links, added up.
#[derive(Default)]
struct Group<'a> {
    counts: HashMap<(UnixMillis, Dimension, &'a str), u64>,
    visitors: Sketch,
}

impl<'a> Group<'a> {
    fn add(&mut self, day: &'a SubjectDay) {
        for sum in &day.sums {
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
        let sum = |((hour, dimension, value), count): ((_, _, &str), u64)| ClickSum {
            hour,
            dimension,
            value: value.into(),
            count,
        };
        SubjectDay {
            subject,
            day,
            sums: counts.into_iter().map(sum).collect(),
            visitors: self.visitors,
        }
    }
}
