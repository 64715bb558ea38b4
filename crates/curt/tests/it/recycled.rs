//! A key that goes from one link to the next takes nothing along.

use std::time::Duration;

use curt_testkit::http::Request;
use serde_json::{Value, json};

use crate::api::{Answer, Api};
use crate::site::Site;
use crate::wait::eventually;

const WAIT_MAX: Duration = Duration::from_secs(60);
const TARGET: &str = "https://example.com/the-same";

/// The strategy `hash` gives the same key to the same target and user, as soon as it is free.
const SETTINGS: &[&str] = &[
    "keys.strategy=hash",
    "purge.recycle=true",
    "purge.quarantine=0s",
    "links.grace=0s",
    "purge.every=100ms",
    "limits.misses_per_address=",
];

fn create(api: &mut Api, name: &str) -> Answer {
    let request = Request::post("/api/v1/links")
        .bearer(api.token())
        .header("Idempotency-Key", name)
        .json(&json!({ "target": TARGET, "visibility": "private" }));
    api.send(&request).unwrap()
}

fn made(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 201, "{answer:?}");
    let body: Value = answer.json();
    let key = body["key"].as_str().unwrap().to_owned();
    (key, answer.header("etag").unwrap().to_owned())
}

#[test]
fn a_recycled_key_opens_nothing_to_those_who_could_follow_its_former_link() {
    let site = Site::start(SETTINGS);
    let mut owner = site.api();
    let mut bob = Api::new(site.http(), &site.new_token("bob"));
    let (key, former) = made(&create(&mut owner, "first"));
    let permissions = format!("/api/v1/links/{key}/permissions");
    let granted = owner.post(&permissions, &json!({ "email": "bob@example.com" }));
    assert_eq!(granted.unwrap().status, 201);
    let follow = |bob: &mut Api| bob.get(&format!("/{key}")).unwrap().status;
    assert_eq!(follow(&mut bob), 302);
    assert_eq!(owner.delete(&key).unwrap().status, 204);
    // A tombstone is gone; a key that was released is not known any more.
    eventually(WAIT_MAX, || match owner.follow(&key).unwrap().status {
        404 => Ok(()),
        status => Err(format!("{status}")),
    });

    let again = create(&mut owner, "second");
    let (same, current) = made(&again);
    assert_eq!(same, key, "the key is used again");
    assert_ne!(current, former, "and the link is another");
    assert_eq!(follow(&mut bob), 403);
    let listed = owner.get(&permissions).unwrap().json();
    assert_eq!(listed["permissions"], json!([]), "{listed}");
    let edit = Request::new("PATCH", &format!("/api/v1/links/{key}"))
        .bearer(owner.token())
        .header("If-Match", &former)
        .json(&json!({ "title": "lost update" }));
    assert_eq!(owner.send(&edit).unwrap().status, 412);
    let replayed = create(&mut owner, "first");
    assert_eq!(replayed.status, 410, "{replayed:?}");
    assert_eq!(replayed.header("idempotent-replayed"), Some("true"));
    let replayed = create(&mut owner, "second");
    assert_eq!(made(&replayed), (key, current));
}
