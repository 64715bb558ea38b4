//! A disk without room: creates say so, redirects go on, and room heals it without a restart.

use std::fs;
use std::time::Duration;

use crate::api::{Answer, Api};
use crate::lifecycle::health::wait_for_status;
use crate::site::Site;
use crate::small_disk::SmallDisk;
use crate::wait::eventually;

#[test]
fn a_full_disk_refuses_creates_and_nothing_else_and_heals() {
    let mut site = Site::new(&["keys.ledger.low=2000", "keys.ledger.high=4000"]);
    let Some(disk) = SmallDisk::mount(&site.folder().join("data")) else {
        return;
    };
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart();
    let mut api = site.api();
    let mut made = vec![created(&api.create("https://example.com/first").unwrap())];
    disk.fill_up();
    let refused = create_until_refused(&mut api, &mut made);
    println!(
        "full_disk: {} links fitted before the first refusal",
        made.len()
    );
    says_come_again(&refused);

    // Cached and not, every link goes on; so does the rest of what only reads.
    for key in &made {
        assert_eq!(
            api.follow(key).unwrap().status,
            302,
            "/{key} on a full disk"
        );
    }
    assert_eq!(api.get("/api/v1/links").unwrap().status, 200);
    // A checkpoint may have made a little room in the log meanwhile.
    says_come_again(&create_until_refused(&mut api, &mut made));
    assert_eq!(api.follow("nosuchkey").unwrap().status, 404);
    // Links are still followed, so the server stays ready; whoever wants to create is told.
    let health = wait_for_status(site.http(), "/health/create", 503);
    assert_eq!(health["status"], "degraded");
    assert_eq!(api.get("/health/ready").unwrap().status, 200);

    disk.make_room();
    wait_for_status(site.http(), "/health/create", 200);
    let healed = eventually(Duration::from_secs(10), || {
        let answer = api.create("https://example.com/healed").unwrap();
        match answer.status {
            201 => Ok(created(&answer)),
            status => Err(format!("{status}: {}", answer.text())),
        }
    });
    made.push(healed);
    let pid = site.server().pid();
    assert!(
        fs::exists(format!("/proc/{pid}")).unwrap(),
        "the server restarted"
    );

    // What was acknowledged around the full disk is on it.
    site.kill();
    site.restart();
    let mut api = site.api();
    for key in &made {
        assert_eq!(
            api.follow(key).unwrap().status,
            302,
            "L-1: /{key} after the full disk"
        );
    }
    assert!(site.terminate().success());
}

fn created(answer: &Answer) -> String {
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["key"].as_str().unwrap().to_owned()
}

/// Long targets fill the last pages soon.
fn create_until_refused(api: &mut Api, made: &mut Vec<String>) -> Answer {
    for number in 0..100_000 {
        let target = format!("https://example.com/{number}/{}", "x".repeat(1_900));
        let answer = api.create(&target).unwrap();
        if answer.status != 201 {
            return answer;
        }
        made.push(created(&answer));
    }
    panic!("the disk never filled up");
}

fn says_come_again(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(answer.json()["code"], "store-unavailable");
    let seconds: u32 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
}
