use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use curt_clicks::record::RecordError;
use curt_core::ports::{ClickSource, DeadLetters as _, SplitRecord};

use crate::world::{
    World, click, drain, folder_in_memory, number_of, numbers, open_at, open_capture, record,
    record_surely,
};

/// The segment's bytes and where each record ends in it.
fn written_segment(world: &World, count: u32) -> (Vec<u8>, Vec<usize>) {
    world.written(count);
    let path = world.segments().remove(0);
    let first: u64 = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let records = runtime.block_on(drain(&world.open(), 0, 0));
    let end_of = |record: &curt_core::ports::StreamRecord| (record.offset + 1 - first) as usize;
    (
        fs::read(path).unwrap(),
        records.iter().map(end_of).collect(),
    )
}

/// What a spool finds whose oldest segment holds `bytes` after a crash.
fn found_in(world: &World, bytes: &[u8]) -> Vec<u32> {
    let copy = folder_in_memory();
    let original = world.segments().remove(0);
    let partition = copy.path().join("0");
    fs::create_dir_all(&partition).unwrap();
    fs::write(partition.join(original.file_name().unwrap()), bytes).unwrap();
    let spool = open_at(copy.path(), &world.settings);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let found = numbers(&runtime.block_on(drain(&spool, 0, 0)));
    // And the next click is taken, after what is there.
    assert!(record(&mut open_capture(&spool, 0).unwrap(), 1_000_000));
    let after = runtime.block_on(drain(&spool, 0, 0));
    assert_eq!(after.len(), found.len() + 1);
    assert_eq!(number_of(after.last().unwrap()), 1_000_000);
    found
}

#[test]
fn a_tail_that_is_cut_or_zeroed_anywhere_leaves_what_stands_before_it() {
    let world = World::in_memory();
    let (bytes, ends) = written_segment(&world, 6);
    assert_eq!(bytes.len(), *ends.last().unwrap());
    for n in 0..bytes.len() {
        let whole = ends.iter().take_while(|end| **end <= n).count() as u32;
        let expected: Vec<u32> = (0..whole).collect();
        assert_eq!(found_in(&world, &bytes[..n]), expected, "cut at {n}");
        // As after a power cut: the file has its length, and some pages never came.
        let mut zeroed = bytes.clone();
        zeroed[n..].fill(0);
        zeroed.resize(128 << 10, 0);
        let found = found_in(&world, &zeroed);
        // A record whose last bytes are zero anyway is whole.
        assert!(found.starts_with(&expected), "zeroed from {n}: {found:?}");
        assert!(
            found.len() <= expected.len() + 1,
            "zeroed from {n}: {found:?}"
        );
    }
}

#[test]
fn records_after_a_hole_are_found() {
    let world = World::in_memory();
    let (bytes, ends) = written_segment(&world, 6);
    for (hole, expected) in [
        (ends[1]..ends[2], [0, 1, 3, 4, 5]),
        (ends[3]..ends[4], [0, 1, 2, 3, 5]),
    ] {
        let mut bytes = bytes.clone();
        bytes[hole].fill(0);
        assert_eq!(found_in(&world, &bytes), expected);
    }
}

/// The texts stand before the second record, which was the first to need them.
#[tokio::test(flavor = "multi_thread")]
async fn records_whose_texts_are_lost_are_dead_letters_and_the_next_segment_is_whole() {
    let world = World::new();
    let spool = world.open();
    let mut capture = open_capture(&spool, 0).unwrap();
    for number in 0..100 {
        assert!(record(&mut capture, number));
    }
    let records = drain(&spool, 0, 0).await;
    let (path, at) = place_of(&world, records[0].offset + 20);
    overwrite(&path, at, b"?");
    assert_eq!(numbers(&drain(&spool, 0, 0).await), [0]);
    assert_eq!(drain(&spool, 0, 0).await.len(), 1);
    assert_eq!(spool.counts().dead_letters["text"], 99, "each once");
    assert_eq!(spool.counts().dead_letters["checksum"], 1);
    drop((spool, capture));
    let spool = world.open();
    let mut capture = open_capture(&spool, 0).unwrap();
    for number in 100..110 {
        assert!(record(&mut capture, number));
    }
    let expected: Vec<u32> = [0].into_iter().chain(100..110).collect();
    assert_eq!(numbers(&drain(&spool, 0, 0).await), expected);
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, at).unwrap();
}

/// Which segment file holds the address, and where in it.
fn place_of(world: &World, address: u64) -> (std::path::PathBuf, u64) {
    let mut segments = world.segments();
    segments.reverse();
    let first_of = |path: &Path| {
        path.file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let path = segments
        .into_iter()
        .find(|path| first_of(path) <= address)
        .unwrap();
    let at = address - first_of(&path);
    (path, at)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_percent_of_poison_costs_one_percent() {
    let world = World::with_small_segments(16 << 20);
    let spool = world.open();
    let mut capture = open_capture(&spool, 0).unwrap();
    for number in 0..10_000 {
        record_surely(&mut capture, number);
    }
    let records = drain(&spool, 0, 0).await;
    // Every hundredth and, once, two side by side; in turn another byte of the record.
    let bad: HashSet<u32> = (0..10_000).step_by(100).chain([501]).collect();
    for number in &bad {
        let record = &records[*number as usize];
        let back = 8 + u64::from(number / 100 % 24);
        let (path, at) = place_of(&world, record.offset - back);
        overwrite(&path, at, &[0xa5]);
    }
    let left = drain(&spool, 0, 0).await;
    let expected: Vec<u32> = (0..10_000).filter(|number| !bad.contains(number)).collect();
    assert_eq!(numbers(&left), expected);
    // Asked twice, counted once.
    assert_eq!(drain(&spool, 0, 0).await, left);
    assert_eq!(spool.counts().dead_letters["checksum"], bad.len() as u64);
    let letters = world.dead_letters();
    assert_eq!(letters.len(), bad.len());
    for number in &bad {
        let offset = records[*number as usize].offset;
        let found = letters
            .iter()
            .filter(|line| line.contains(&format!("\"offset\":{offset},")));
        let found: Vec<_> = found.collect();
        assert_eq!(found.len(), 1, "record {number}");
        assert!(found[0].contains("\"reason\":\"checksum\""), "{}", found[0]);
        assert!(!found[0].contains("bytes"), "who came stands in them");
    }
    // And a restart finds the same.
    drop((spool, capture));
    assert_eq!(numbers(&drain(&world.open(), 0, 0).await), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_length_costs_its_record_alone() {
    let world = World::new();
    let spool = world.open();
    let mut capture = open_capture(&spool, 0).unwrap();
    for number in 0..100 {
        assert!(record(&mut capture, number));
    }
    let records = drain(&spool, 0, 0).await;
    let (path, at) = place_of(&world, records[49].offset + 1);
    overwrite(&path, at, &[0xff; 8]);
    let expected: Vec<u32> = (0..100).filter(|number| *number != 50).collect();
    assert_eq!(numbers(&drain(&spool, 0, 0).await), expected);
    assert_eq!(spool.counts().dead_letters["checksum"], 1);
    // The writer goes on.
    assert!(record(&mut capture, 100));
    assert_eq!(drain(&spool, 0, 0).await.len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_header_costs_its_segment_and_no_offset() {
    let world = World::with_small_segments(4 << 20);
    world.written(3);
    let spool = world.open();
    let before = drain(&spool, 0, 0).await;
    drop(spool);
    overwrite(&world.segments()[0], 33, b"?");
    let spool = world.open();
    assert_eq!(drain(&spool, 0, 0).await, []);
    assert_eq!(spool.counts().dead_letters["segment"], 1);
    assert!(record(&mut open_capture(&spool, 0).unwrap(), 4));
    let after = drain(&spool, 0, before[2].offset + 1).await;
    assert_eq!(numbers(&after), [4]);
    let kept = fs::read_dir(world.path().join("0")).unwrap();
    let mut kept = kept.map(|entry| entry.unwrap().path());
    let bad = kept.find(|path| path.extension().is_some_and(|end| end == "bad"));
    assert_eq!(fs::metadata(bad.unwrap()).unwrap().len(), 64, "no clicks");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_records_are_counted_and_kept_up_to_the_bound() {
    let mut world = World::new();
    world.settings.dead_letter_bytes = 1_000;
    world.settings.keeps_dead_records = true;
    let spool = world.open();
    let mut writer = spool.take_writer(0).unwrap();
    assert!(writer.write(SplitRecord::whole(b"\x09 of another version")));
    let polled = spool
        .poll(0, 0, 10, Duration::ZERO)
        .await
        .unwrap()
        .remove(0);
    let error = curt_clicks::record::decode(&polled.bytes).unwrap_err();
    assert_eq!(error, RecordError::Version(9));
    for _ in 0..100 {
        spool.put(0, polled.offset, error.reason(), &polled.bytes);
    }
    assert_eq!(spool.counts().dead_letters["version"], 100);
    let letters = world.dead_letters();
    let offset = polled.offset;
    assert_eq!(
        letters[0],
        format!(
            "{{\"partition\":0,\"offset\":{offset},\"reason\":\"version\",\"length\":20,\"crc32\":\"{:08x}\",\"bytes\":\"09206f6620616e6f746865722076657273696f6e\"}}",
            crc32fast::hash(&polled.bytes)
        )
    );
    let size = fs::metadata(world.path().join("dead-letters"))
        .unwrap()
        .len();
    assert!((500..=1_000).contains(&size), "{size}");
}

/// Bytes that a visitor sends never pass for a record, even when the record around them is damaged.
#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_cannot_forge_a_record() {
    let world = World::new();
    world.written(1);
    let forged = fs::read(&world.segments()[0]).unwrap();
    let spool = world.open();
    let mut capture = open_capture(&spool, 0).unwrap();
    let agent = &forged[64..];
    assert!(capture.record(&curt_clicks::record::ClickRecord { agent, ..click(5) }));
    assert!(record(&mut capture, 6));
    let records = drain(&spool, 0, 0).await;
    assert_eq!(records.len(), 3);
    let (path, _) = place_of(&world, records[1].offset);
    overwrite(&path, 64, &[0; 8]);
    assert_eq!(numbers(&drain(&spool, 0, 0).await), [0, 6]);
}
