//! The primary is killed and its standby promoted at once, again and again, under load.

use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::need;

use super::load::Load;
use super::{FAILED_PER_MILLE, Installation, Replication};
use crate::length::{length, time_max};
use crate::scale::plant::stop;
use crate::wait::eventually;

const WRITES_BACK_WITHIN: Duration = Duration::from_secs(30);
const AWAY_MAX: Duration = Duration::from_secs(120);
const UNDER_LOAD: Duration = Duration::from_millis(500);

#[derive(Default)]
struct Outcome {
    answered: usize,
    failed: usize,
    acknowledged: usize,
    lost: usize,
    slowest: Duration,
}

/// Kills the primary and promotes its standby, so many times, and counts what visitors and writers see.
fn fail_over(installation: &mut Installation, replication: Replication, rounds: usize) -> Outcome {
    let mut outcome = Outcome::default();
    for _ in 0..rounds {
        let address = installation.server.http().unwrap();
        let doomed = installation.new_links();
        let load = Load::start(address, &installation.token, &installation.keys, doomed);
        thread::sleep(UNDER_LOAD);
        let begun = Instant::now();
        installation.pair.kill_primary().unwrap();
        installation.pair.promote().unwrap();
        eventually(AWAY_MAX, || {
            match installation
                .api()
                .create("https://example.com/back")
                .unwrap()
            {
                answer if answer.status == 201 => Ok(()),
                answer => Err(format!("{answer:?}")),
            }
        });
        outcome.slowest = outcome.slowest.max(begun.elapsed());
        thread::sleep(UNDER_LOAD);
        let seen = load.stop(&(begun..Instant::now()));
        outcome.answered += seen.redirects.answered;
        outcome.failed += seen.redirects.failed;
        outcome.acknowledged += seen.acknowledged.len();
        let mut api = installation.api();
        for (target, key) in &seen.acknowledged {
            let answer = api.follow(key).unwrap();
            let is_there = answer.header("location") == Some(target.as_str());
            outcome.lost += usize::from(!is_there);
        }
        installation.pair.add_standby().unwrap();
        if replication == Replication::Synchronous {
            installation.pair.make_synchronous().unwrap();
        }
    }
    outcome
}

fn check(name: &str, outcome: &Outcome) {
    let Outcome {
        answered,
        failed,
        acknowledged,
        lost,
        slowest,
    } = outcome;
    println!(
        "failovers, {name}: {answered} redirects, {failed} failed; {acknowledged} creates acknowledged, {lost} lost; \
         writes back after {slowest:?} at most"
    );
    assert!(*answered > 50, "{answered}");
    assert!(
        failed * 1_000 <= (answered + failed) * FAILED_PER_MILLE,
        "{failed} of {answered} redirects failed"
    );
    assert!(*acknowledged > 0);
    assert!(*slowest <= time_max(WRITES_BACK_WITHIN), "{slowest:?}");
}

#[test]
fn a_promoted_standby_has_every_acknowledged_link_if_replication_is_synchronous_l1() {
    let mut installation = need!(Installation::start());
    let outcome = fail_over(&mut installation, Replication::Synchronous, length(1, 10));
    check("synchronous", &outcome);
    assert_eq!(outcome.lost, 0, "L-1: acknowledged creates were lost");
    stop(installation.server);
}

/// What asynchronous replication may lose is said, not judged.
#[test]
fn redirects_read_from_replicas_survive_failovers_with_asynchronous_replication() {
    let settings = [("postgres.read_from", "replica")];
    let installation = Installation::start_with(Replication::Asynchronous, &settings);
    let mut installation = need!(installation);
    let outcome = fail_over(&mut installation, Replication::Asynchronous, length(1, 10));
    check("asynchronous, replicas read", &outcome);
    stop(installation.server);
}
