//! Links that are followed all the time on four servers, and changed on one of them.

use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::engines::proxy::Line;
use curt_testkit::need;
use serde_json::{Value, json};

use super::Fleet;
use crate::alone::alone;
use crate::api::Api;
use crate::length::{length, time_max};

const SERVERS: usize = 4;
/// L-2: nearly always, and at worst.
const STALE_USUAL: Duration = Duration::from_secs(1);
const STALE_MAX: Duration = Duration::from_secs(5);
/// Answers in a row, after the first new one, that must be new, too.
const NEW_ANSWERS: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Delete,
    Retarget,
    MakePrivate,
}

const CHANGES: [Change; 3] = [Change::Delete, Change::Retarget, Change::MakePrivate];

impl Change {
    fn apply(self, api: &mut Api, key: &str) {
        let answer = match self {
            Self::Delete => api.delete(key),
            Self::Retarget => api.edit(key, &json!({ "target": "https://example.com/new" })),
            Self::MakePrivate => api.edit(key, &json!({ "visibility": "private" })),
        };
        let answer = answer.unwrap();
        assert!((200..300).contains(&answer.status), "{self:?}: {answer:?}");
    }

    /// Whether an answer is that of after the change.
    fn shows(self, api: &mut Api, key: &str) -> bool {
        let answer = api.follow(key).unwrap();
        match self {
            Self::Delete => answer.status == 410,
            Self::Retarget => answer.header("location") == Some("https://example.com/new"),
            Self::MakePrivate => answer.status == 401,
        }
    }
}

/// Follows a link until the change shows. Returns when the last request began that was answered as before.
fn follow(api: &mut Api, key: &str, change: Change) -> Option<Instant> {
    let (mut last_stale, mut in_a_row) = (None, 0);
    while in_a_row < NEW_ANSWERS {
        let begun = Instant::now();
        if change.shows(api, key) {
            in_a_row += 1;
        } else {
            assert_eq!(in_a_row, 0, "{change:?}: what was before came back");
            last_stale = Some(begun);
        }
    }
    last_stale
}

/// How long after the acknowledgement the change was not seen somewhere.
fn change_once(fleet: &Fleet, apis: &mut [Api], round: usize) -> Duration {
    let change = CHANGES[round % CHANGES.len()];
    let mut writer = fleet.api(round % SERVERS);
    let created: Value = writer.create("https://example.com/old").unwrap().json();
    let key = created["key"].as_str().unwrap();
    for api in &mut *apis {
        for _ in 0..3 {
            assert_eq!(api.follow(key).unwrap().status, 302);
        }
    }
    thread::scope(|scope| {
        let followers: Vec<_> = apis
            .iter_mut()
            .map(|api| scope.spawn(move || follow(api, key, change)))
            .collect();
        thread::sleep(Duration::from_millis(5));
        change.apply(&mut writer, key);
        let acknowledged = Instant::now();
        let last = followers
            .into_iter()
            .filter_map(|follower| follower.join().unwrap());
        last.map(|last| last.saturating_duration_since(acknowledged))
            .max()
            .unwrap_or_default()
    })
}

fn judge(fleet: &Fleet, rounds: usize, what: &str) {
    let mut apis: Vec<Api> = (0..SERVERS).map(|server| fleet.api(server)).collect();
    let mut stale: Vec<Duration> = (0..rounds)
        .map(|round| change_once(fleet, &mut apis, round))
        .collect();
    stale.sort_unstable();
    let usual = stale[(rounds * 999 / 1_000).min(rounds - 1)];
    let (median, worst) = (stale[rounds / 2], stale[rounds - 1]);
    println!(
        "caches: {rounds} changes, {what}: stale for {median:?} (median), {usual:?} (99.9 %), {worst:?} at most"
    );
    assert!(usual <= time_max(STALE_USUAL), "L-2: {usual:?}");
    assert!(worst <= time_max(STALE_MAX), "L-2: {worst:?}");
}

#[test]
fn a_hot_link_that_changes_is_not_served_as_before_by_any_of_four_servers_l2() {
    let _alone = alone();
    let fleet = need!(Fleet::start(SERVERS, 2, &[]));
    fleet.await_channel(true);
    judge(&fleet, length(12, 500), "channel sound");
}

/// Nothing passes, and nobody is told: the lease on the channel runs out, and then copies do.
#[test]
fn a_hot_link_that_changes_is_not_served_as_before_without_the_channel_l2() {
    let _alone = alone();
    // Copies would live for a minute if the channel were trusted.
    let fleet = need!(Fleet::start(SERVERS, 2, &[("cache.confirmed_ttl", "60s")]));
    fleet.await_channel(true);
    let keys = fleet.create_links(1);
    let mut apis: Vec<Api> = (0..SERVERS).map(|server| fleet.api(server)).collect();
    for api in &mut apis {
        assert_eq!(api.follow(&keys[0]).unwrap().status, 302);
    }
    fleet.channel.set(Line::Held);
    // At the moment of the cut every server has a copy and trusts the channel.
    let cut = Instant::now();
    Change::Delete.apply(&mut fleet.api(0), &keys[0]);
    for api in &mut apis {
        let last = follow(api, &keys[0], Change::Delete);
        let stale = last.map(|last| last.saturating_duration_since(cut));
        assert!(stale <= Some(time_max(STALE_MAX)), "L-2: {stale:?}");
    }
    judge(&fleet, length(3, 100), "channel held");
    fleet.channel.set(Line::Cut);
    judge(&fleet, length(3, 100), "channel cut");
    fleet.channel.set(Line::Sound);
    fleet.await_channel(true);
    judge(&fleet, length(3, 30), "channel back");
}
