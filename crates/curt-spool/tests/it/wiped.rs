//! What was counted is not kept: a record holds its visitor's address.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use curt_clicks::record::ClickRecord;
use curt_core::ports::{ClickSource, StreamRecord};
use curt_spool::Spool;

use crate::world::{World, click, drain, numbers, open_capture, record, record_surely};

/// How many clicks' visitors stand in the files, by their addresses and keys.
fn traces(world: &World) -> usize {
    count_in_files(world, b"\xc0\x00\x02\x01\x07abcdefg")
}

fn count_in_files(world: &World, text: &[u8]) -> usize {
    let files = world.segments().into_iter();
    files
        .map(|path| {
            let bytes = fs::read(path).unwrap();
            let windows = bytes.windows(text.len());
            windows.filter(|seen| *seen == text).count()
        })
        .sum()
}

async fn commit_after(spool: &Spool, record: &StreamRecord) {
    spool.commit(0, record.offset + 1).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_committed_record_leaves_no_trace_and_the_others_stay() {
    let world = World::new();
    let spool = world.open();
    let mut capture = open_capture(&spool, 0).unwrap();
    for number in 0..1_000 {
        record_surely(&mut capture, number);
    }
    let records = drain(&spool, 0, 0).await;
    assert_eq!(traces(&world), 1_000);
    commit_after(&spool, &records[299]).await;
    assert_eq!(traces(&world), 700);
    // In the middle of a record: that one is not before it.
    spool.commit(0, records[400].offset - 5).await.unwrap();
    assert_eq!(traces(&world), 600);
    commit_after(&spool, &records[10]).await;
    let rest: Vec<u32> = (400..1_000).collect();
    assert_eq!(numbers(&drain(&spool, 0, 0).await), rest);
    assert_eq!(spool.counts().dead_letters.len(), 0, "zeros are no damage");
    drop((capture, spool));

    let spool = world.open();
    let position = records[399].offset + 1;
    assert_eq!(numbers(&drain(&spool, 0, position).await), rest);
    assert_eq!(spool.counts().dead_letters.len(), 0, "zeros are no damage");
    let mut capture = open_capture(&spool, 0).unwrap();
    assert!(record(&mut capture, 1_000));
    // Further than anything is written: the next record must come through whole.
    spool.commit(0, u64::MAX).await.unwrap();
    assert!(record(&mut capture, 1_001));
    assert_eq!(traces(&world), 1);
    let last = drain(&spool, 0, position).await;
    assert_eq!(numbers(&last), [1_001]);
    commit_after(&spool, &last[0]).await;
    assert_eq!(traces(&world), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_came_once_is_wiped_and_a_common_one_is_stored_once() {
    const ONCE: &[u8] = b"https://b.example/reset?token=17";
    const COMMON: &[u8] = b"Firefox/142.0";
    let world = World::new();
    let spool = world.open();
    let mut capture = open_capture(&spool, 0).unwrap();
    assert!(capture.record(&ClickRecord {
        referrer: ONCE,
        ..click(0)
    }));
    for number in 1..100 {
        record_surely(&mut capture, number);
    }
    assert_eq!(count_in_files(&world, ONCE), 1);
    // In the first record, and then by itself.
    assert_eq!(count_in_files(&world, COMMON), 2);
    let records = spool.poll(0, 0, 1_000, Duration::ZERO).await.unwrap();
    commit_after(&spool, &records[49]).await;
    assert_eq!(count_in_files(&world, ONCE), 0);
    assert_eq!(count_in_files(&world, COMMON), 1);
    let rest: Vec<u32> = (50..100).collect();
    assert_eq!(numbers(&drain(&spool, 0, 0).await), rest);
    drop((capture, spool));
    let found = drain(&world.open(), 0, records[49].offset + 1).await;
    assert_eq!(numbers(&found), rest, "texts before the wiped records");
}

/// Zeros that are written would be a third of all that clicks write.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wiped_is_given_back_to_the_disk() {
    let world = World::new();
    let spool = world.open();
    let mut capture = open_capture(&spool, 0).unwrap();
    for number in 0..5_000 {
        record_surely(&mut capture, number);
    }
    let blocks = || fs::metadata(&world.segments()[0]).unwrap().blocks() * 512;
    let before = blocks();
    let records = drain(&spool, 0, 0).await;
    commit_after(&spool, &records[4_899]).await;
    let given_back = before - blocks();
    let wiped = records[4_899].offset - records[0].offset;
    assert!(given_back + 3 * 4_096 >= wiped, "{given_back} of {wiped}");
    assert_eq!(
        numbers(&drain(&spool, 0, 0).await),
        (4_900..5_000).collect::<Vec<_>>()
    );
}
