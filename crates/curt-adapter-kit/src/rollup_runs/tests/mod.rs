use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::ports::HourRange;
use curt_core::{
    ClickSubject, Day, Dimension, DomainId, ErrorKind, LinkId, OwnerId, PortError, PortResult,
    Rollup, Sketch, SubjectDay,
};
use curt_testkit::fuzz::Fuzz;

use super::chunk::EntryReader;
use super::*;

mod erase;

/// An engine in memory.
#[derive(Default)]
struct Runs(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    next: i64,
    runs: BTreeMap<i64, NewRun>,
    /// How often runs were edited.
    edits: BTreeMap<i64, i64>,
    aside: Vec<i64>,
    /// Runs whose pages cannot be read.
    unreadable: Vec<i64>,
}

impl Tables {
    fn edits_of(&self, id: i64) -> i64 {
        self.edits.get(&id).copied().unwrap_or(0)
    }

    fn has(&self, id: i64, edits: i64) -> bool {
        self.runs.contains_key(&id) && self.edits_of(id) == edits
    }
}

impl Runs {
    fn add(&self, days: &[SubjectDay]) {
        let mut tables = self.0.lock().unwrap();
        for run in encode(days).unwrap() {
            tables.next += 1;
            let id = tables.next;
            tables.runs.insert(id, run);
        }
    }

    fn ids_of(&self, day: Day) -> Vec<i64> {
        let tables = self.0.lock().unwrap();
        let of_day = tables.runs.iter().filter(|(_, run)| run.day == day);
        of_day.map(|(id, _)| *id).collect()
    }
}

#[async_trait]
impl RollupRuns for Runs {
    fn backend(&self) -> &'static str {
        "test"
    }

    async fn find(
        &self,
        key: &[u8],
        first: Day,
        last: Day,
        limit: usize,
    ) -> PortResult<Vec<FoundChunk>> {
        let tables = self.0.lock().unwrap();
        let mut found = Vec::new();
        let mut runs: Vec<(&i64, &NewRun)> = tables.runs.iter().collect();
        runs.retain(|(_, run)| (first..=last).contains(&run.day));
        runs.sort_by_key(|(_, run)| run.day);
        for day in runs
            .chunk_by(|(_, one), (_, next)| one.day == next.day)
            .take(limit)
        {
            found.extend(day.iter().map(|(id, run)| {
                let chunk = run.chunks.iter().rfind(|chunk| *chunk.first_key <= *key);
                FoundChunk {
                    day: run.day,
                    run: **id,
                    edits: tables.edits_of(**id),
                    content: chunk.map(|chunk| chunk.content.clone()),
                }
            }));
        }
        Ok(found)
    }

    async fn list_small(&self, limit: usize) -> PortResult<Vec<RunEntry>> {
        let tables = self.0.lock().unwrap();
        let entries = tables.runs.iter().rev().map(|(id, run)| RunEntry {
            id: *id,
            day: run.day,
            bytes: run.bytes(),
            edits: tables.edits_of(*id),
        });
        let small = entries
            .filter(|run| run.bytes < SMALL_BYTES && !tables.aside.contains(&run.id))
            .take(limit);
        Ok(small.collect())
    }

    async fn read(&self, id: i64) -> PortResult<Vec<Vec<u8>>> {
        let tables = self.0.lock().unwrap();
        if tables.unreadable.contains(&id) {
            let kind = ErrorKind::Corrupt;
            return Err(PortError::new(kind, "test", "read", "a page is damaged"));
        }
        let run = tables.runs.get(&id);
        let chunks = run.map(|run| run.chunks.iter().map(|chunk| chunk.content.clone()));
        Ok(chunks.into_iter().flatten().collect())
    }

    async fn replace(&self, old: &[RunEntry], new: NewRun) -> PortResult<bool> {
        let mut tables = self.0.lock().unwrap();
        if !old.iter().all(|run| tables.has(run.id, run.edits)) {
            return Ok(false);
        }
        for run in old {
            tables.runs.remove(&run.id);
        }
        tables.next += 1;
        let id = tables.next;
        tables.runs.insert(id, new);
        Ok(true)
    }

    async fn edit_chunk(&self, edit: ChunkEdit) -> PortResult<bool> {
        let mut tables = self.0.lock().unwrap();
        if !tables.has(edit.run, edit.edits) {
            return Ok(false);
        }
        *tables.edits.entry(edit.run).or_default() += 1;
        let run = tables.runs.get_mut(&edit.run).unwrap();
        let place = run
            .chunks
            .iter()
            .position(|chunk| chunk.first_key == edit.first_key);
        run.chunks
            .splice(place.unwrap()..=place.unwrap(), edit.rest);
        Ok(true)
    }

    async fn set_aside(&self, id: i64) -> PortResult<()> {
        self.0.lock().unwrap().aside.push(id);
        Ok(())
    }
}

fn link(key: &str) -> ClickSubject {
    let id = LinkId {
        domain: DomainId(0),
        key: curt_core::Key::parse(key).unwrap(),
    };
    ClickSubject::Link(id, 1)
}

fn counted(subject: ClickSubject, day: u32, value: &str, count: u64) -> SubjectDay {
    let day = Day::numbered(day);
    let mut visitors = Sketch::new();
    visitors.insert(count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    SubjectDay {
        subject,
        day,
        rollups: vec![Rollup {
            hour: day.hour(3),
            dimension: Dimension::Country,
            value: value.into(),
            count,
        }],
        visitors,
    }
}

/// Windows of two days with many links and a few subjects that are in all of them.
fn window(number: u64) -> Vec<SubjectDay> {
    let mut days = Vec::new();
    for day in [100, 101] {
        for n in 0..200 {
            let key = format!("k{}", (n * 7 + number * 13) % 1_000);
            days.push(counted(link(&key), day, "DE", 1 + number));
        }
        days.push(counted(ClickSubject::Everything, day, "DE", 200));
        days.push(counted(ClickSubject::Owner(OwnerId(7)), day, "SE", 1));
        days.push(counted(ClickSubject::tag(OwnerId(7), "a"), day, "SE", 2));
    }
    days
}

/// What is expected, by subject, day and value.
fn model(windows: u64) -> BTreeMap<(ClickSubject, Day), u64> {
    let mut counts = BTreeMap::new();
    for day in (0..windows).flat_map(window) {
        *counts.entry((day.subject, day.day)).or_default() += day.rollups[0].count;
    }
    counts
}

async fn assert_model(runs: &Runs, windows: u64) {
    for ((subject, day), count) in model(windows) {
        let range = HourRange {
            from: day.start(),
            before: day.next().start(),
        };
        let series = read_series(runs, &subject, Dimension::Country, range).await;
        let series = series.unwrap();
        assert_eq!(series.len(), 1, "{subject:?} {day:?}");
        assert_eq!(series[0].count, count, "{subject:?} {day:?}");
        let top = read_top(runs, &subject, Dimension::Country, range, 3);
        assert_eq!(top.await.unwrap().total(), count);
    }
}

#[tokio::test]
async fn runs_add_up_before_and_after_merges() {
    let runs = Runs::default();
    for number in 0..10 {
        runs.add(&window(number));
    }
    assert_model(&runs, 10).await;
    merge_small(&runs).await.unwrap();
    assert_eq!(runs.ids_of(Day::numbered(100)).len(), 1);
    assert_model(&runs, 10).await;
    let (absent, present) = (link("nosuch"), link("k0"));
    let none = read_series(&runs, &absent, Dimension::Country, HourRange::ALL).await;
    assert_eq!(none.unwrap(), Vec::new());
    let both = read_visitors(&runs, &present, Day::FIRST, Day::LAST).await;
    assert_eq!(both.unwrap().len(), 2);
}

#[tokio::test]
async fn days_that_are_over_are_merged_further() {
    let runs = Runs::default();
    for number in 0..3 {
        runs.add(&window(number));
    }
    merge_small(&runs).await.unwrap();
    assert_eq!(runs.ids_of(Day::numbered(100)).len(), 3);
    runs.add(&[counted(ClickSubject::Everything, 102, "DE", 1)]);
    merge_small(&runs).await.unwrap();
    assert_eq!(runs.ids_of(Day::numbered(100)).len(), 1);
    assert_eq!(runs.ids_of(Day::numbered(101)).len(), 3);
    assert_model(&runs, 3).await;
}

#[tokio::test]
async fn a_damaged_run_is_set_aside_and_the_others_are_merged() {
    for is_page in [true, false] {
        let runs = Runs::default();
        for number in 0..10 {
            runs.add(&window(number));
        }
        let damaged = runs.ids_of(Day::numbered(100))[4];
        {
            let mut tables = runs.0.lock().unwrap();
            match is_page {
                true => tables.unreadable.push(damaged),
                false => {
                    let run = tables.runs.get_mut(&damaged).unwrap();
                    run.chunks[0].content[100] ^= 1;
                }
            }
        }
        merge_small(&runs).await.unwrap();
        assert_eq!(runs.0.lock().unwrap().aside, [damaged]);
        let left = runs.ids_of(Day::numbered(100));
        assert_eq!(left.len(), 2, "the damaged one and the merged");
        assert!(left.contains(&damaged));
    }
}

#[test]
fn runs_of_different_sizes_are_left_alone() {
    let entry = |id, day, bytes| RunEntry {
        id,
        day: Day::numbered(day),
        bytes,
        edits: 0,
    };
    let mut small: Vec<RunEntry> = (0..7).map(|id| entry(id, 5, 1_000)).collect();
    assert!(merge::group_of(&small).is_none());
    small.push(entry(7, 5, 100_000));
    small.push(entry(8, 4, 1_000));
    assert!(merge::group_of(&small).is_none());
    small.push(entry(9, 5, 1_001));
    let group = merge::group_of(&small).unwrap();
    assert_eq!(group.len(), 8);
    assert!(
        group
            .iter()
            .all(|run| run.day.number() == 5 && run.bytes < 2_000)
    );
    // No run gets too large to be merged or removed at once.
    let large: Vec<RunEntry> = (0..8).map(|id| entry(id, 5, SMALL_BYTES - 1)).collect();
    assert_eq!(merge::group_of(&large).unwrap().len(), 2);
}

/// Stored runs outlive versions.
#[test]
fn the_stored_form_is_fixed() {
    let mut day = counted(link("ab"), 0, "DE", 2);
    day.visitors = Sketch::new();
    let run = &encode(&[day]).unwrap()[0];
    assert_eq!((run.subjects, run.chunks.len()), (1, 1));
    let key = [4, 0, 0, 0, 0, 0, 0, 0, 1, b'a', b'b'];
    assert_eq!(run.chunks[0].first_key, key);
    let content = &run.chunks[0].content;
    assert_eq!((content[0], content[5]), (1, 23));
    let mut entries = EntryReader::new(std::slice::from_ref(content));
    entries.advance().unwrap();
    assert_eq!(entries.key(), Some(&key[..]));
    let stored = entries.day().unwrap();
    assert_eq!(stored.counts, [1, 1, 5, 2, b'D', b'E', 8, 2]);
    assert_eq!(stored.visitors, [1]);
}

#[test]
fn every_flipped_bit_is_noticed() {
    let run = &encode(&window(0)).unwrap()[0];
    let content = &run.chunks[0].content;
    for place in (0..content.len()).step_by(7) {
        let mut damaged = content.clone();
        damaged[place] ^= 1 << (place % 8);
        let damaged = [damaged];
        assert!(
            EntryReader::new(&damaged).advance().is_err(),
            "byte {place}"
        );
    }
}

#[test]
fn mutated_chunks_are_refused_or_read() {
    let runs = encode(&window(0)).unwrap();
    let chunks = runs.into_iter().flat_map(|run| run.chunks);
    let samples: Vec<Vec<u8>> = chunks.map(|chunk| chunk.content).collect();
    Fuzz::new("rollup_chunk", samples).run(|input| {
        // With a checksum that is right: what is behind it must hold on its own.
        let mut input = input.to_vec();
        if let Some((head, rest)) = input.split_first_chunk_mut::<5>() {
            head[1..].copy_from_slice(&crc32fast::hash(rest).to_le_bytes());
        }
        let input = [input];
        let mut entries = EntryReader::new(&input);
        loop {
            match entries.advance() {
                Ok(()) if entries.key().is_none() => return true,
                Ok(()) => assert!(entries.day().is_some()),
                Err(_) => return false,
            }
        }
    });
}
