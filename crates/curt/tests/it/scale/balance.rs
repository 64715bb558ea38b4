//! HAProxy before three servers, with checks and agents that follow their load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::engines::Port;
use curt_testkit::engines::haproxy::Balancer;
use curt_testkit::http::{Connection, Request};
use curt_testkit::need;
use curt_testkit::process::Server;
use curt_testkit::stop::SetOnDrop;
use rustix::process::Signal;

use super::fleet::{Fleet, SERVERS, Share, shares, wait_until_balanced};
use crate::alone::alone;
use crate::length::{is_full, length};
use crate::lifecycle::stops::{create_link, run_beside_load};
use crate::wait::eventually;

const CLIENTS: usize = 8;
/// A slow server runs for a quarter of the time.
const STOPPED_FOR: Duration = Duration::from_millis(150);
const RUNNING_FOR: Duration = Duration::from_millis(50);

/// Makes a server slow until told to stop: it stands still most of the time.
fn slow_down(server: &Server, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        server.signal(Signal::STOP).unwrap();
        thread::sleep(STOPPED_FOR);
        server.signal(Signal::CONT).unwrap();
        thread::sleep(RUNNING_FOR);
    }
}

/// Follows a link again and again until told to stop. Returns answers and failures.
fn follow(front: &Port, key: &str, done: &AtomicBool) -> (usize, Vec<String>) {
    let request = Request::get(&format!("/{key}"));
    let (mut answered, mut failed) = (0, Vec::new());
    while !done.load(Ordering::Relaxed) {
        let Ok(mut connection) = Connection::open(front.address()) else {
            failed.push("not let in".to_owned());
            continue;
        };
        while !done.load(Ordering::Relaxed) {
            match connection.send(&request) {
                Ok(answer) if answer.status == 302 => answered += 1,
                Ok(answer) => failed.push(answer.status.to_string()),
                Err(error) => {
                    failed.push(error.to_string());
                    break;
                }
            }
            // A load that two cores carry together with all servers.
            thread::sleep(Duration::from_millis(2));
        }
    }
    (answered, failed)
}

/// The part of the requests that each server got within the time.
fn parts_within(balancer: &Balancer, time: Duration) -> Vec<f64> {
    let before = shares(balancer, "links");
    thread::sleep(time);
    let after = shares(balancer, "links");
    let got = |(before, after): (&Share, &Share)| (after.requests - before.requests) as f64;
    let got: Vec<f64> = before.iter().zip(&after).map(got).collect();
    let all: f64 = got.iter().sum();
    got.iter().map(|part| part / all.max(1.0)).collect()
}

/// Waits until `is_reached`, and returns how long that took.
fn time_until(balancer: &Balancer, is_reached: impl Fn(&[Share]) -> bool) -> Duration {
    let began = Instant::now();
    eventually(Duration::from_secs(30), || {
        let shares = shares(balancer, "links");
        match is_reached(&shares) {
            true => Ok(()),
            false => Err(format!("{shares:?}")),
        }
    });
    began.elapsed()
}

#[test]
fn traffic_leaves_a_slow_server_in_proportion_and_a_dead_one_at_once() {
    let _alone = alone();
    let mut fleet = need!(Fleet::start(&[]));
    let front = Port::free().unwrap();
    let balancer = need!(fleet.balance(&front));
    let key = create_link(front.address(), fleet.token());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(|| follow(&front, &key, &done)))
            .collect();
        let end = SetOnDrop::of(&done);
        // Whoever starts is not at its usual speed yet.
        time_until(&balancer, |shares| {
            shares.iter().all(|share| share.weight >= 70)
        });
        let even = parts_within(&balancer, Duration::from_secs(1));
        println!("parts before: {even:.2?}");

        let slow_ends = AtomicBool::new(false);
        thread::scope(|slow_scope| {
            let slow = fleet.server(0);
            slow_scope.spawn(|| slow_down(slow, &slow_ends));
            let slow_end = SetOnDrop::of(&slow_ends);
            // A quarter of the time, and what the average has of before.
            let noticed = time_until(&balancer, |shares| shares[0].weight <= 40);
            println!("slow one noticed after {noticed:.2?}");
            if is_full() {
                assert!(noticed <= Duration::from_secs(2), "{noticed:?}");
            }
            let parts = parts_within(
                &balancer,
                length(Duration::from_secs(1), Duration::from_secs(5)),
            );
            println!("parts with a slow one: {parts:.2?}");
            // In proportion: 0.25 of what each other one gets is 0.11 of all.
            assert!(parts[0] < 0.24, "{parts:?}");
            if is_full() {
                assert!((0.03..=0.2).contains(&parts[0]), "{parts:?}");
            }
            drop(slow_end);
        });
        let recovered = time_until(&balancer, |shares| shares[0].weight >= 70);
        println!("well again after {recovered:.2?}");

        fleet.kill_server(1);
        let noticed = time_until(&balancer, |shares| !shares[1].is_up);
        println!("dead one noticed after {noticed:.2?}");
        if is_full() {
            assert!(noticed <= Duration::from_secs(1), "{noticed:?}");
        }
        let parts = parts_within(&balancer, Duration::from_millis(500));
        assert_eq!(parts[1], 0.0, "{parts:?}");
        drop(end);
        let (mut answered, mut failed) = (0, Vec::new());
        for client in clients {
            let seen = client.join().unwrap();
            answered += seen.0;
            failed.extend(seen.1);
        }
        println!("{answered} answered, {} failed", failed.len());
        assert!(answered > 100, "{answered}");
        assert!(failed.is_empty(), "{failed:?}");
    });
}

#[test]
fn a_rolling_restart_of_all_servers_fails_no_redirect_and_no_create() {
    let mut fleet = need!(Fleet::start(&[]));
    let front = Port::free().unwrap();
    let balancer = need!(fleet.balance(&front));
    let key = create_link(front.address(), fleet.token());
    let token = fleet.token().to_owned();
    let rounds = length(1, 8);
    let seen = run_beside_load(front.address(), &token, &key, || {
        for restart in 0..rounds * SERVERS {
            fleet.stop_server(restart % SERVERS);
            fleet.start_server(restart % SERVERS);
            wait_until_balanced(&balancer, SERVERS);
        }
    });
    println!(
        "{rounds} rounds: {} answered, {} failed",
        seen.answered,
        seen.failed.len()
    );
    assert!(seen.answered > 0);
    assert!(seen.failed.is_empty(), "{:?}", seen.failed);
}
