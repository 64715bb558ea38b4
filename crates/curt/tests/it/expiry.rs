//! Links that end: at the second that was said, by purge on access and by the clock, and keys that come back.

use std::thread;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::api::{Api, bulk_results};
use crate::length::{length, time_max};
use crate::site::Site;
use crate::wait::eventually;

/// L-2: a change is seen by every visitor within this time.
const SEEN_WITHIN: Duration = Duration::from_secs(1);

/// How far ahead the end of a link lies that must have been made, and followed, by then.
fn ahead() -> i64 {
    length(3_000, 1_000)
}

/// Whole milliseconds, as the product keeps them.
fn in_millis(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(Timestamp::now().as_millisecond() + millis).unwrap()
}

fn key_of(api: &mut Api, link: &serde_json::Value) -> String {
    let answer = api.post("/api/v1/links", link).unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["key"].as_str().unwrap().to_owned()
}

/// So many links in one request, and so in one commit: on a slow disk the last of single creates would come too late.
fn keys_of(api: &mut Api, count: usize, ends: &str) -> Vec<String> {
    let links: Vec<_> = (0..count)
        .map(|number| json!({ "target": format!("https://example.com/{number}"), "expires_at": ends }))
        .collect();
    let answer = api.post("/api/v1/links/bulk", &json!({ "links": links }));
    bulk_results(&answer.unwrap())
}

fn status(api: &mut Api, key: &str) -> u16 {
    api.follow(key).unwrap().status
}

/// Follows the link up to its end, all the time, and returns how far from the said instant it ended.
fn end_of(api: &mut Api, key: &str, ends: Timestamp) -> SignedDuration {
    loop {
        let before = Timestamp::now();
        let seen = status(api, key);
        let after = Timestamp::now();
        match seen {
            302 => assert!(before < ends, "L-2: /{key} redirects after its end"),
            410 => {
                assert!(after >= ends, "/{key} ended before its time");
                return after.duration_since(ends);
            }
            other => panic!("/{key}: {other}"),
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_link_ends_at_the_instant_that_was_said_l2() {
    // No purge: what ends the link is the clock at the click alone.
    let site = Site::start(&["purge.scheduled=false", "purge.on_access=false"]);
    let mut api = site.api();
    let ends = in_millis(ahead());
    let key = key_of(
        &mut api,
        &json!({ "target": "https://example.com/", "expires_at": ends.to_string() }),
    );
    let late = end_of(&mut api, &key, ends);
    println!("expiry: a link ended {late:#} after the instant that was said");
    let late_max = time_max(Duration::from_millis(500));
    assert!(late.unsigned_abs() < late_max, "{late:#}");

    let ends = in_millis(ahead());
    let body = json!({ "original_url": "https://example.com/o", "custom_alias": "original",
        "expire_date": ends.to_string() });
    assert_eq!(api.post("/api/v1/createURL", &body).unwrap().status, 200);
    end_of(&mut api, "original", ends);

    // An edit brings an expired link's life forward or back.
    let key = key_of(
        &mut api,
        &json!({ "target": "https://example.com/", "expires_at": null }),
    );
    assert_eq!(status(&mut api, &key), 302);
    let ends = in_millis(ahead());
    let edited = api
        .edit(&key, &json!({ "expires_at": ends.to_string() }))
        .unwrap();
    assert_eq!(edited.status, 200, "{edited:?}");
    end_of(&mut api, &key, ends);
}

#[test]
fn a_date_means_the_end_of_that_day() {
    let site = Site::start(&[]);
    let mut api = site.api();
    let body = json!({ "original_url": "https://example.com/", "custom_alias": "day", "expire_date": "2999-12-31" });
    assert_eq!(api.post("/api/v1/createURL", &body).unwrap().status, 200);
    let link = api.get("/api/v1/links/day").unwrap().json();
    let ends: Timestamp = link["expires_at"].as_str().unwrap().parse().unwrap();
    let day = "2999-12-31T00:00:00Z".parse::<Timestamp>().unwrap();
    let length = ends.duration_since(day);
    assert!(
        (SignedDuration::from_secs(86_399)..=SignedDuration::from_secs(86_400)).contains(&length),
        "{ends}"
    );
}

#[test]
fn a_link_begins_at_the_instant_that_was_said() {
    // Whoever asks again and again for a link that is not there yet would be taken for a scanner.
    let site = Site::start(&["limits.misses_per_address="]);
    let mut api = site.api();
    let begins = in_millis(ahead());
    let key = key_of(
        &mut api,
        &json!({ "target": "https://example.com/", "valid_since": begins.to_string() }),
    );
    eventually(Duration::from_secs(5), || {
        let before = Timestamp::now();
        let seen = status(&mut api, &key);
        match seen {
            404 => {
                assert!(
                    before < begins + time_max(SEEN_WITHIN),
                    "/{key} begins too late"
                );
                Err("not yet")
            }
            302 => {
                assert!(Timestamp::now() >= begins, "/{key} begins too early");
                Ok(())
            }
            other => panic!("/{key}: {other}"),
        }
    });
}

#[test]
fn expired_links_are_purged_on_access_and_by_the_clock() {
    for (on_access, scheduled, how) in [(true, false, "access"), (false, true, "schedule")] {
        let site = Site::start(&[
            "links.grace=0s",
            "purge.every=200ms",
            &format!("purge.on_access={on_access}"),
            &format!("purge.scheduled={scheduled}"),
        ]);
        let mut api = site.api();
        let ends = in_millis(ahead()).to_string();
        let keys = keys_of(&mut api, 20, &ends);
        let kept = key_of(&mut api, &json!({ "target": "https://example.com/kept" }));
        eventually(Duration::from_secs(10), || {
            if on_access {
                for key in &keys {
                    assert!(matches!(status(&mut api, key), 302 | 410));
                }
            }
            let name = format!("curt_links_purged_total{{how=\"{how}\"}}");
            match site.metrics().get(&name) {
                Some(20.0) => Ok(()),
                seen => Err(format!("{name} is {seen:?}")),
            }
        });
        for key in &keys {
            assert_eq!(status(&mut api, key), 410, "a purged link answers 410");
            let shown = api.get(&format!("/api/v1/links/{key}")).unwrap();
            assert_eq!(
                shown.status, 404,
                "a purged link is not the owner's any more"
            );
        }
        assert_eq!(status(&mut api, &kept), 302);
    }
}

/// With the default settings, and a purge that would take what it may.
#[test]
fn an_expired_link_stays_for_its_owner_and_is_renewed() {
    let site = Site::start(&["purge.every=100ms"]);
    let mut api = site.api();
    let ends = in_millis(ahead()).to_string();
    let key = &keys_of(&mut api, 1, &ends)[0];
    eventually(Duration::from_secs(10), || match status(&mut api, key) {
        410 => Ok(()),
        status => Err(format!("{status}")),
    });
    // Some rounds of the purge, by the clock and on access.
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(status(&mut api, key), 410);
    }
    let shown = api.get(&format!("/api/v1/links/{key}")).unwrap();
    assert_eq!(shown.json()["state"], "expired", "{}", shown.text());
    let renewed = api.edit(key, &json!({ "expires_at": null })).unwrap();
    assert_eq!(renewed.json()["state"], "active", "{}", renewed.text());
    assert_eq!(status(&mut api, key), 302);
}

#[test]
fn a_purged_key_comes_back_only_when_recycling_is_on_l3() {
    for recycle in [false, true] {
        let site = Site::start(&[
            &format!("purge.recycle={recycle}"),
            "purge.quarantine=1s",
            "links.grace=0s",
            "purge.every=200ms",
            // A key comes back when its batch is used up: these are batches of one.
            "keys.pool.batch=1",
            "keys.pool.in_flight=100ms",
            "keys.pool.low=8",
            "keys.pool.high=16",
            "keys.buffer.capacity=8",
            "keys.buffer.low=6",
        ]);
        let mut api = site.api();
        // A new server makes random keys until its ring is filled; those of the ring are meant here.
        eventually(Duration::from_secs(15), || {
            match site.metrics().get("curt_keys{stage=\"buffered\"}") {
                Some(held) if held >= 5.0 => Ok(()),
                held => Err(format!("{held:?} keys are in the ring")),
            }
        });
        let ends = in_millis(ahead()).to_string();
        let keys = keys_of(&mut api, 5, &ends);
        let alias =
            json!({ "target": "https://example.com/", "alias": "named", "expires_at": ends });
        key_of(&mut api, &alias);
        // A batch is used up for certain when the ring has handed out what came behind it.
        keys_of(&mut api, 40, "2999-01-01T00:00:00Z");
        let recycled = || {
            site.metrics()
                .get("curt_keys_recycled_total")
                .unwrap_or_default()
        };
        if recycle {
            eventually(Duration::from_secs(15), || match recycled() {
                5.0 => Ok(()),
                seen => Err(format!("{seen} of 5 keys came back")),
            });
            // The tombstones are gone with their quarantine; the alias is never given away.
            for key in &keys {
                assert_eq!(status(&mut api, key), 404, "/{key}");
            }
        } else {
            let purged = "curt_links_purged_total{how=\"schedule\"}";
            eventually(Duration::from_secs(10), || {
                match site.metrics().get(purged) {
                    Some(6.0) => Ok(()),
                    seen => Err(format!("{seen:?} links purged")),
                }
            });
            // Longer than the quarantine would be.
            thread::sleep(Duration::from_millis(1_500));
            assert_eq!(recycled(), 0.0);
            for key in &keys {
                assert_eq!(status(&mut api, key), 410, "/{key}");
            }
        }
        assert_eq!(status(&mut api, "named"), 410);
    }
}

#[test]
fn a_deleted_link_is_gone_and_an_edited_one_leads_on_at_once_l2() {
    let site = Site::start(&[]);
    let mut api = site.api();
    // Visitors come over connections of their own, to every worker.
    let mut visitors: Vec<Api> = (0..8).map(|_| site.api()).collect();
    let mut slowest = Duration::ZERO;
    for round in 0..20 {
        let key = key_of(&mut api, &json!({ "target": "https://example.com/before" }));
        for visitor in &mut visitors {
            assert_eq!(status(visitor, &key), 302);
        }
        let changed = api
            .edit(&key, &json!({ "target": "https://example.com/after" }))
            .unwrap();
        assert_eq!(changed.status, 200, "{changed:?}");
        for visitor in &mut visitors {
            let seen = visitor.follow(&key).unwrap();
            assert_eq!(
                seen.header("location"),
                Some("https://example.com/after"),
                "round {round}"
            );
        }
        assert_eq!(api.delete(&key).unwrap().status, 204);
        let deleted = Instant::now();
        for visitor in &mut visitors {
            while status(visitor, &key) != 410 {
                assert!(
                    deleted.elapsed() < time_max(SEEN_WITHIN),
                    "L-2: /{key} goes on after its deletion"
                );
            }
            slowest = slowest.max(deleted.elapsed());
        }
        for visitor in &mut visitors {
            assert_eq!(status(visitor, &key), 410, "L-2: /{key} came back");
        }
    }
    println!("expiry: the slowest of 160 visitors saw a deletion after {slowest:?}");
}
