use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::ClickSource;
use tokio::task::JoinSet;

use crate::world::{World, number_of, open_capture, record_surely};

const RECORDS: u32 = 1_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_beside_the_writer_sees_every_record_once_and_in_order() {
    let mut world = World::new();
    world.settings.segment_bytes = 1 << 20;
    let spool = Arc::new(world.open());
    let mut capture = open_capture(&spool, 0).unwrap();
    let writing = std::thread::spawn(move || {
        for number in 0..RECORDS {
            record_surely(&mut capture, number);
        }
    });
    let (mut next, mut position) = (0, 0);
    while next < RECORDS {
        let records = spool
            .poll(0, position, 5_000, Duration::ZERO)
            .await
            .unwrap();
        for record in &records {
            assert!(record.offset >= position);
            position = record.offset + 1;
            assert_eq!(number_of(record), next);
            next += 1;
        }
        spool.commit(0, position).await.unwrap();
        if records.is_empty() {
            tokio::task::yield_now().await;
        }
    }
    writing.join().unwrap();
    assert!(
        spool
            .poll(0, position, 1, Duration::ZERO)
            .await
            .unwrap()
            .is_empty()
    );
    let counts = spool.counts();
    assert_eq!(counts.captured, u64::from(RECORDS));
    assert_eq!(counts.dead_letters.len(), 0, "{counts:?}");
    assert!(world.segments().len() <= 3, "what is read is deleted");
}

/// With more threads than cores, writers fill whole segments while a reader is in the middle of one.
#[tokio::test(flavor = "multi_thread")]
async fn readers_that_their_writers_overtake_miss_no_end_of_a_segment() {
    const EACH: u32 = 200_000;
    let mut world = World::in_memory();
    world.settings.writers = 4;
    world.settings.total_bytes = 64 << 20;
    let spool = Arc::new(world.open());
    let mut reading = JoinSet::new();
    for partition in 0..world.settings.writers {
        let mut capture = open_capture(&spool, partition).unwrap();
        std::thread::spawn(move || {
            for number in 0..EACH {
                record_surely(&mut capture, number);
            }
        });
        let spool = Arc::clone(&spool);
        reading.spawn(async move {
            let (mut next, mut position) = (0, 0);
            while next < EACH {
                for record in &spool
                    .poll(partition, position, usize::MAX, Duration::ZERO)
                    .await
                    .unwrap()
                {
                    assert_eq!(number_of(record), next);
                    (next, position) = (next + 1, record.offset + 1);
                }
                spool.commit(partition, position).await.unwrap();
            }
        });
    }
    while let Some(read) = reading.join_next().await {
        read.unwrap();
    }
}
