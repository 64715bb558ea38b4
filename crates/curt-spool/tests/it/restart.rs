use std::time::Duration;

use curt_clicks::record::{ClickRecord, decode};
use curt_core::ports::ClickSource;
use curt_core::{ErrorKind, UnixMillis};
use curt_spool::{Spool, SpoolMetrics, SpoolSettings};

use crate::world::{
    NOW, World, click, drain, number_of, numbers, open_at, open_capture, record, record_surely,
};

#[tokio::test(flavor = "multi_thread")]
async fn offsets_go_on_over_restarts_whatever_was_read_and_whatever_the_clock_says() {
    let world = World::with_small_segments(4 << 20);
    let (mut position, mut written, mut read) = (0, 0, Vec::new());
    for round in 0_u32..12 {
        // The clock steps back by an hour at every start.
        let now = NOW.minus(std::time::Duration::from_secs(3_600 * u64::from(round)));
        let metrics = SpoolMetrics::default();
        let spool = Spool::open(&world.path(), &world.settings, now, &metrics).unwrap();
        let mut capture = open_capture(&spool, 0).unwrap();
        for _ in 0..round * 100 {
            record_surely(&mut capture, written);
            written += 1;
        }
        if round % 3 == 2 {
            let records = drain(&spool, 0, position).await;
            let end = records.last().unwrap().offset + 1;
            assert!(end > position, "an offset was used again");
            position = end;
            read.extend(numbers(&records));
            spool.commit(0, position).await.unwrap();
        }
    }
    assert_eq!(read, (0..written).collect::<Vec<_>>());
    assert_eq!(world.dead_letters(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spool_that_was_deleted_does_not_use_old_offsets_again() {
    let world = World::new();
    world.written(1_000);
    let end = drain(&world.open(), 0, 0).await.last().unwrap().offset;
    std::fs::remove_dir_all(world.path()).unwrap();
    let later = UnixMillis(NOW.0 + 1);
    let metrics = SpoolMetrics::default();
    let spool = Spool::open(&world.path(), &world.settings, later, &metrics).unwrap();
    assert!(record(&mut open_capture(&spool, 0).unwrap(), 7));
    let records = drain(&spool, 0, end + 1).await;
    assert_eq!(numbers(&records), [7]);
}

/// What consumers remember is about this folder, and not about one that took its place.
#[test]
fn a_spool_keeps_its_id_and_no_other_has_it() {
    let (world, other) = (World::new(), World::new());
    let first = world.open().id();
    assert_eq!(world.open().id(), first);
    assert_ne!(other.open().id(), first);
    std::fs::remove_dir_all(world.path()).unwrap();
    assert_ne!(world.open().id(), first);
}

#[test]
fn a_damaged_id_is_replaced_for_good() {
    let world = World::new();
    world.written(10);
    for damage in ["", "no id", "11111111111111111"] {
        let before = world.open().id();
        std::fs::write(world.path().join("id"), damage).unwrap();
        let after = world.open().id();
        assert_ne!(after, before, "{damage:?}");
        assert_eq!(world.open().id(), after, "{damage:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clicks_keep_their_order_when_the_clock_steps_back() {
    let world = World::new();
    let spool = world.open();
    let mut capture = open_capture(&spool, 0).unwrap();
    let times = [NOW.0, NOW.0 + 5, NOW.0 - 3_600_000, -1, i64::MIN, i64::MAX];
    for time in times {
        let at = UnixMillis(time);
        assert!(capture.record(&ClickRecord { at, ..click(1) }));
    }
    let records = drain(&spool, 0, 0).await;
    let read: Vec<i64> = records
        .iter()
        .map(|record| decode(&record.bytes).unwrap().at.0)
        .collect();
    assert_eq!(read, times);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_deletes_the_files_that_are_read_and_no_others() {
    let world = World::with_small_segments(8 << 20);
    let spool = world.open();
    let mut capture = open_capture(&spool, 0).unwrap();
    for number in 0..80_000 {
        record_surely(&mut capture, number);
    }
    let files = world.segments().len();
    assert!(files > 20, "{files}");
    let bytes = spool.counts().bytes;
    let records = drain(&spool, 0, 0).await;
    assert_eq!(numbers(&records), (0..80_000).collect::<Vec<_>>());

    let middle = records[records.len() / 2].offset;
    spool.commit(0, middle).await.unwrap();
    let left = world.segments().len();
    assert!(
        (files / 2..=files / 2 + 2).contains(&left),
        "{left} of {files}"
    );
    assert!(spool.counts().bytes < bytes * 6 / 10);
    assert_eq!(drain(&spool, 0, middle).await, records[records.len() / 2..]);

    spool
        .commit(0, records.last().unwrap().offset + 1)
        .await
        .unwrap();
    let left = world.segments().len();
    assert!(
        left <= 2,
        "{left} files: more than the one that is written and the next"
    );
    assert!(record(&mut capture, 99));
    let last = records.last().unwrap().offset + 1;
    assert_eq!(numbers(&drain(&spool, 0, last).await), [99]);
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_without_a_reader_do_not_use_up_the_bound() {
    let world = World::with_small_segments(1 << 20);
    for number in 0..100 {
        let spool = world.open();
        assert!(
            record(&mut open_capture(&spool, 0).unwrap(), number),
            "start {number}"
        );
    }
    let spool = world.open();
    let records = drain(&spool, 0, 0).await;
    assert_eq!(numbers(&records), (0..100).collect::<Vec<_>>());
    assert!(spool.counts().bytes < 1 << 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn fewer_workers_still_read_what_more_of_them_wrote() {
    let mut world = World::new();
    world.settings.writers = 4;
    let spool = world.open();
    for partition in 0..4 {
        assert!(record(
            &mut open_capture(&spool, partition).unwrap(),
            partition
        ));
    }
    drop(spool);
    world.settings.writers = 1;
    let spool = world.open();
    assert_eq!(spool.assignment().await.unwrap(), [0, 1, 2, 3]);
    let mut positions = Vec::new();
    for partition in 0..4 {
        let records = drain(&spool, partition, 0).await;
        assert_eq!(numbers(&records), [partition]);
        positions.push(records[0].offset + 1);
        spool.commit(partition, u64::MAX).await.unwrap();
    }
    assert!(open_capture(&spool, 1).is_err());
    let refused = spool.poll(4, 0, 1, Duration::ZERO).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);

    // Nothing is left in them, and still their offsets go on.
    drop(spool);
    world.settings.writers = 4;
    let spool = world.open();
    for (partition, position) in (0..).zip(positions) {
        assert!(record(&mut open_capture(&spool, partition).unwrap(), 9));
        assert_eq!(numbers(&drain(&spool, partition, position).await), [9]);
    }
}

#[test]
fn a_second_spool_in_the_folder_is_refused_as_long_as_anybody_writes() {
    let world = World::new();
    let spool = world.open();
    let refused = || {
        let metrics = SpoolMetrics::default();
        let error = Spool::open(&world.path(), &world.settings, NOW, &metrics).unwrap_err();
        let me = format!("in use by process {}", std::process::id());
        assert!(error.to_string().contains(&me), "{error}");
        assert_eq!(error.kind, ErrorKind::Unavailable);
    };
    refused();
    let capture = open_capture(&spool, 0).unwrap();
    drop(spool);
    refused();
    drop(capture);
    drop(world.open());
}

#[test]
fn each_partition_has_one_writer() {
    let world = World::new();
    let spool = world.open();
    let capture = open_capture(&spool, 0).unwrap();
    assert_eq!(
        open_capture(&spool, 0).unwrap_err().kind,
        ErrorKind::Invalid
    );
    assert_eq!(
        open_capture(&spool, 1).unwrap_err().kind,
        ErrorKind::Invalid
    );
    drop(capture);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for settings in [
        SpoolSettings {
            writers: 0,
            ..SpoolSettings::default()
        },
        SpoolSettings {
            total_bytes: 400_000,
            ..SpoolSettings::default()
        },
        SpoolSettings {
            sync_every: std::time::Duration::ZERO,
            ..SpoolSettings::default()
        },
    ] {
        let metrics = SpoolMetrics::default();
        let error = Spool::open(folder.path(), &settings, NOW, &metrics).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{settings:?}");
    }
    // Many workers get smaller files rather than an error.
    let many = SpoolSettings {
        writers: 64,
        ..SpoolSettings::default()
    };
    let spool = open_at(folder.path(), &many);
    for partition in 0..64 {
        assert!(record(
            &mut open_capture(&spool, partition).unwrap(),
            partition
        ));
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for partition in 0..64 {
        let records = runtime.block_on(drain(&spool, partition, 0));
        assert_eq!(number_of(&records[0]), partition);
    }
    assert!(spool.counts().bytes <= many.total_bytes);
}
