use curt_core::ClickSubject;
use hashbrown::HashMap;

use super::subject_hours::SubjectHours;
use super::table::{Attributions, SubjectIndex};

/// Subjects that links count for: everything, owners, tags.
pub(super) struct Groups {
    pub(super) subjects: Vec<ClickSubject>,
    /// By the number of an attribution, and behind them for clicks that have none.
    pub(super) members: Vec<Vec<SubjectIndex>>,
    pub(super) hours: SubjectHours,
}

impl Groups {
    pub(super) fn new(attributions: &Attributions) -> Self {
        let mut groups = Self {
            subjects: Vec::new(),
            members: Vec::new(),
            hours: SubjectHours::default(),
        };
        let mut known = HashMap::new();
        let of_all = attributions.iter().map(|known| known.subjects());
        for subjects in of_all.chain([vec![ClickSubject::Everything]]) {
            let members = subjects.into_iter().map(|subject| {
                *known.entry(subject).or_insert_with_key(|subject| {
                    groups.subjects.push(subject.clone());
                    SubjectIndex(u32::try_from(groups.subjects.len() - 1).unwrap_or(u32::MAX))
                })
            });
            groups.members.push(members.collect());
        }
        groups
    }

    /// The place of an attribution's groups.
    pub(super) fn of(&self, attribution: Option<u32>) -> usize {
        attribution.map_or(self.members.len() - 1, |number| number as usize)
    }
}
