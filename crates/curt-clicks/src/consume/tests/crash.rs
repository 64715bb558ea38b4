//! Counts are exact whatever happens at whatever step (C-1).

use std::sync::Arc;
use std::time::Duration;

use curt_core::ClickSubject;
use curt_core::ports::{ClickCounters as _, ClickSource as _, CounterAddition, StreamPartition};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::trouble::{Fate, Trouble, troubled};
use super::world::{OWNERS, World, click, encoded, link, quick};
use crate::consume::{ConsumerMetrics, ConsumerPorts, ConsumerSettings, Pipeline};

const CLICKS: u32 = 40;

/// Clicks of two links by ten people.
async fn filled() -> World {
    fill(World::new()).await
}

async fn fill(world: World) -> World {
    let keys = ["a", "b"];
    let clicks = (0..CLICKS).map(|n| click(keys[n as usize % 2], n % 10));
    world.capture(&clicks.collect::<Vec<_>>()).await;
    world
}

async fn assert_exact(world: &World, what: &str) {
    let clicks = u64::from(CLICKS);
    for (subject, want) in [
        (link("a"), clicks / 2),
        (link("b"), clicks / 2),
        (OWNERS, clicks),
        (ClickSubject::Everything, clicks),
    ] {
        assert_eq!(world.total(&subject).await, want, "{what}: {subject:?}");
    }
    let visitors = world.visitors(&OWNERS).await;
    assert_eq!(visitors.len(), 1, "{what}");
    assert_eq!(visitors[0].1, 10, "{what}: the salt outlives the process");
    assert_eq!(world.clicks().await.len(), CLICKS as usize, "{what}");
    assert_eq!(world.offset().await, clicks, "{what}");
}

/// Runs a pipeline that ends when all is counted, or dies on the way; says whether it died.
async fn run(world: &World, fate: Fate, settings: ConsumerSettings) -> bool {
    let trouble = Trouble::new(fate);
    let ports = troubled(world, &trouble);
    let stop = CancellationToken::new();
    stop.cancel();
    let pipeline = Pipeline::new(ports, settings, ConsumerMetrics::default());
    tokio::select! {
        biased;
        () = trouble.died.notified() => true,
        () = pipeline.run(stop) => false,
    }
}

#[tokio::test]
async fn a_death_at_any_step_loses_nothing_and_counts_nothing_twice_c1() {
    for (window_polls, new_world) in [
        (1, World::new as fn() -> World),
        (3, World::new),
        (1, World::with_counters),
        (3, World::with_counters),
    ] {
        let settings = ConsumerSettings {
            poll_max: 7,
            read_bytes_max: 7 * window_polls * encoded(&click("b", 0)).len() as u64,
            window: std::time::Duration::from_secs(3_600),
            ..quick()
        };
        let mut step = 0;
        loop {
            let world = fill(new_world()).await;
            let died = run(&world, Fate::DiesAt(step), settings).await;
            // Again and again at the same step of what is left, then to the end.
            for _ in 0..3 {
                run(&world, Fate::DiesAt(step), settings).await;
            }
            run(&world, Fate::DiesAt(u64::MAX), settings).await;
            assert_exact(&world, &format!("dead at step {step}")).await;
            step += 1;
            if !died {
                break;
            }
        }
        assert!(step > 30, "only {step} steps were tried");
    }
}

#[tokio::test]
async fn counters_that_are_emptied_at_any_step_lose_nothing_c1() {
    let settings = ConsumerSettings {
        read_bytes_max: 3 * 7 * encoded(&click("b", 0)).len() as u64,
        window: Duration::from_secs(3_600),
        ..quick()
    };
    for step in 0..60 {
        let world = fill(World::with_counters()).await;
        let counters = world.counters.clone().unwrap();
        run(&world, Fate::EmptiesAt(step, counters), settings).await;
        // It may have ended with the failure.
        run(&world, Fate::DiesAt(u64::MAX), settings).await;
        assert_exact(&world, &format!("emptied at step {step}")).await;
    }
}

#[tokio::test]
async fn what_the_counters_refuse_is_read_again_c1() {
    let settings = ConsumerSettings {
        window: Duration::from_secs(3_600),
        ..quick()
    };
    let world = fill(World::with_counters()).await;
    // It ends with the refusal.
    run(&world, Fate::RefusesAnAddition, settings).await;
    run(&world, Fate::DiesAt(u64::MAX), settings).await;
    assert_exact(&world, "refused").await;
}

/// What was added before the death is not read again.
#[tokio::test]
async fn a_window_in_the_counters_outlives_its_process() {
    let world = fill(World::with_counters()).await;
    let settings = ConsumerSettings {
        window: Duration::from_secs(3_600),
        ..quick()
    };
    let running = tokio::spawn(
        Pipeline::new(world.ports(), settings, ConsumerMetrics::default())
            .run(CancellationToken::new()),
    );
    let partition = StreamPartition {
        stream: world.stream.id(),
        number: 0,
    };
    let counters = world.counters.clone().unwrap();
    let added = async {
        loop {
            let window = counters.window(partition).await.unwrap();
            match window {
                Some(window) if window.to == u64::from(CLICKS) => return window,
                _ => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    };
    let window = timeout(Duration::from_secs(20), added).await.unwrap();
    assert_eq!(window.from, 0);
    assert_eq!(world.offset().await, 0, "the window has not ended");
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    // So that it shows where they come from.
    let twice = CounterAddition {
        from: 0,
        seen: window.to,
        next: window.to,
        counts: window.counts,
        piece: Vec::new(),
    };
    counters.add(partition, twice).await.unwrap().unwrap();
    world.drain(settings).await;
    let total = world.total(&ClickSubject::Everything).await;
    assert_eq!(total, 2 * u64::from(CLICKS), "they were read again");
    assert_eq!(world.clicks().await.len(), CLICKS as usize);
    assert_eq!(counters.window(partition).await.unwrap(), None);
}

#[tokio::test]
async fn answers_that_do_not_come_are_waited_for_c1() {
    for seed in 0..40 {
        let is_even = seed % 2 == 0;
        let world = if is_even {
            World::new()
        } else {
            World::with_counters()
        };
        let world = fill(world).await;
        let trouble = Trouble::new(Fate::FailsBySeed(seed));
        let stop = CancellationToken::new();
        let pipeline = Pipeline::new(
            troubled(&world, &trouble),
            quick(),
            ConsumerMetrics::default(),
        );
        let running = tokio::spawn(pipeline.run(stop.clone()));
        let all = async {
            while world.offset().await < u64::from(CLICKS) {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        let minute = std::time::Duration::from_secs(60);
        tokio::time::timeout(minute, all).await.unwrap();
        stop.cancel();
        running.await.unwrap();
        assert_exact(&world, &format!("seed {seed}")).await;
    }
}

/// A consumer that was thought dead goes on beside its successor (E13).
#[tokio::test(flavor = "multi_thread")]
async fn two_consumers_of_one_partition_count_once_c1() {
    for round in 0..40 {
        let is_even = round % 2 == 0;
        let world = if is_even {
            World::new()
        } else {
            World::with_counters()
        };
        let world = fill(world).await;
        let stop = CancellationToken::new();
        stop.cancel();
        let one = |poll_max| {
            let settings = ConsumerSettings {
                poll_max,
                ..quick()
            };
            let pipeline = Pipeline::new(world.ports(), settings, ConsumerMetrics::default());
            tokio::spawn(pipeline.run(stop.clone()))
        };
        for consumer in [one(3), one(4), one(5)] {
            consumer.await.unwrap();
        }
        world.drain(quick()).await;
        assert_exact(&world, "three consumers").await;
    }
}

/// What fails at the start is the question for the position: without clicks, nothing is written that could succeed.
#[tokio::test]
async fn a_store_that_comes_back_is_counted_into_again_without_clicks() {
    let world = World::new();
    let trouble = Trouble::new(Fate::FailsBefore(50));
    let ports = ConsumerPorts {
        store: troubled(&world, &trouble).store,
        ..world.ports()
    };
    let pipeline = Pipeline::new(ports, quick(), ConsumerMetrics::default());
    let state = pipeline.state();
    let stop = CancellationToken::new();
    let running = tokio::spawn(Arc::clone(&pipeline).run(stop.clone()));
    let wait_until = async |is_stopped: bool| {
        while state.stopped().is_some() != is_stopped {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let (max, why) = (Duration::from_secs(20), "counting stands still");
    timeout(max, wait_until(true)).await.expect("no failure");
    timeout(max, wait_until(false)).await.expect(why);
    stop.cancel();
    running.await.unwrap();
}

/// A report never waits long: it reads what is stored.
#[tokio::test]
async fn a_store_that_fails_or_does_not_answer_stops_no_report() {
    for fate in [Fate::FailsBefore(u64::MAX), Fate::DiesAt(0)] {
        let world = filled().await;
        let trouble = Trouble::new(fate);
        let pipeline = Pipeline::new(
            ConsumerPorts {
                store: troubled(&world, &trouble).store,
                ..world.ports()
            },
            quick(),
            ConsumerMetrics::default(),
        );
        let requests = pipeline.flush_requests();
        let stop = CancellationToken::new();
        let running = tokio::spawn(Arc::clone(&pipeline).run(stop.clone()));
        let asking = async {
            for _ in 0..3 {
                requests.flush().await;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        timeout(Duration::from_secs(60), asking).await.unwrap();
        running.abort();
    }
}
