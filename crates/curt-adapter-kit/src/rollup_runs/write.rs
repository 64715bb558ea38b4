//! A window becomes runs.

use std::collections::BTreeMap;

use curt_core::{Day, SubjectDay};

use super::NewRun;
use super::chunk::RunWriter;
use super::subject_key::subject_key;
use crate::click_days::StoredDay;
use crate::varint::Damaged;

/// The runs of what a window has counted, one per day. A subject's day may come more than once.
pub fn encode(days: &[SubjectDay]) -> Result<Vec<NewRun>, Damaged> {
    let mut by_day = BTreeMap::<Day, Vec<(Vec<u8>, &SubjectDay)>>::new();
    for counted in days {
        let entries = by_day.entry(counted.day).or_default();
        entries.push((subject_key(&counted.subject), counted));
    }
    let runs = by_day.into_iter();
    runs.map(|(day, entries)| encode_day(day, entries))
        .collect()
}

fn encode_day(day: Day, mut entries: Vec<(Vec<u8>, &SubjectDay)>) -> Result<NewRun, Damaged> {
    entries.sort_unstable_by(|(key, _), (other, _)| key.cmp(other));
    let mut run = RunWriter::new(day);
    for same in entries.chunk_by(|(key, _), (next, _)| key == next) {
        let (key, first) = &same[0];
        let mut stored = StoredDay::of(first);
        for (_, more) in &same[1..] {
            stored.merge(StoredDay::of(more).as_bytes())?;
        }
        run.push(key, stored.as_bytes());
    }
    Ok(run.finish())
}
