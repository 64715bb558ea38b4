use std::time::{Duration, Instant};

use curt_core::ports::ClickSource;
use curt_spool::{Spool, SpoolMetrics};
use prometheus_client::registry::Registry;

use crate::world::{NOW, World, drain, numbers, open_capture, record};

/// Records until the spool has refused many, and says how many were recorded in all.
fn record_until_full(
    spool: &Spool,
    capture: &mut curt_clicks::capture::Capture,
    mut number: u32,
) -> u32 {
    let started = Instant::now();
    while spool.counts().dropped_full < 500 {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{:?}",
            spool.counts()
        );
        record(capture, number);
        number += 1;
    }
    number
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_full_spool_clicks_are_dropped_and_counted_exactly_c2() {
    let world = World::with_small_segments(1 << 20);
    let mut registry = Registry::default();
    let metrics = SpoolMetrics::register(&mut registry);
    let spool = Spool::open(&world.path(), &world.settings, NOW, &metrics).unwrap();
    let mut capture = open_capture(&spool, 0).unwrap();
    let recorded = record_until_full(&spool, &mut capture, 0);
    let counts = spool.counts();
    assert_eq!(counts.captured + counts.dropped(), u64::from(recorded));
    assert!(counts.bytes <= 1 << 20, "{counts:?}");
    assert_eq!(counts.dropped_disk, 0);

    let first = drain(&spool, 0, 0).await;
    assert_eq!(first.len() as u64, counts.captured);
    // Room comes back with what is read, without a restart.
    let position = first.last().unwrap().offset + 1;
    spool.commit(0, position).await.unwrap();
    let mut again = recorded;
    while !record(&mut capture, again) {
        again += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    again += 1;
    let recorded = again;
    let counts = spool.counts();
    assert_eq!(counts.captured + counts.dropped(), u64::from(recorded));
    let rest = drain(&spool, 0, position).await;
    assert_eq!(numbers(&rest), [recorded - 1]);

    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        format!("curt_clicks_captured_total {}\n", counts.captured),
        format!(
            "curt_clicks_dropped_total{{reason=\"full\"}} {}\n",
            counts.dropped_full
        ),
        format!(
            "curt_clicks_dropped_total{{reason=\"late\"}} {}\n",
            counts.dropped_late
        ),
        "curt_clicks_dropped_total{reason=\"disk\"} 0\n".to_owned(),
        "curt_spool_bytes ".to_owned(),
    ] {
        assert!(text.contains(&line), "{line:?} is not in\n{text}");
    }
}

/// The writer counts whatever the keeper does meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_too_slow_costs_clicks_and_no_mistake() {
    let world = World::with_small_segments(1 << 20);
    let spool = std::sync::Arc::new(world.open());
    let mut capture = open_capture(&spool, 0).unwrap();
    let writing = std::thread::spawn(move || {
        let kept = (0..200_000).filter(|number| record(&mut capture, *number));
        kept.collect::<Vec<u32>>()
    });
    let (mut read, mut position) = (Vec::new(), 0);
    while !writing.is_finished() {
        let records = spool.poll(0, position, 500, Duration::ZERO).await.unwrap();
        if let Some(last) = records.last() {
            position = last.offset + 1;
        }
        read.extend(numbers(&records));
        spool.commit(0, position).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let kept = writing.join().unwrap();
    read.extend(numbers(&drain(&spool, 0, position).await));
    assert_eq!(read, kept);
    let counts = spool.counts();
    assert_eq!(counts.captured, kept.len() as u64);
    assert_eq!(counts.captured + counts.dropped(), 200_000);
    assert!(
        counts.dropped() > 0,
        "the test wrote too little to show anything"
    );
    assert_eq!(counts.dead_letters.len(), 0);
}
