use std::sync::Arc;

use curt_core::ports::ClickStream;

use crate::world::{World, number_of, record_surely};

const RECORDS: u32 = 1_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_beside_the_writer_sees_every_record_once_and_in_order() {
    let mut world = World::new();
    world.settings.segment_bytes = 1 << 20;
    let spool = Arc::new(world.open());
    let mut capture = spool.capture(0).unwrap();
    let writing = std::thread::spawn(move || {
        for number in 0..RECORDS {
            record_surely(&mut capture, number);
        }
    });
    let (mut next, mut position) = (0, 0);
    while next < RECORDS {
        let records = spool.poll(0, position, 5_000).await.unwrap();
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
    assert!(spool.poll(0, position, 1).await.unwrap().is_empty());
    let counts = spool.counts();
    assert_eq!(counts.captured, u64::from(RECORDS));
    assert_eq!(counts.poisoned.len(), 0, "{counts:?}");
    assert!(world.segments().len() <= 3, "what is read is deleted");
}
