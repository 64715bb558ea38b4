//! Bulk requests full of links with passwords, each of which costs as much to hash as a sign-in.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::http::{Connection, Request};
use serde_json::json;

use super::{Bystander, yield_to_server};
use crate::length::length;
use crate::site::Site;

const CONNECTIONS: usize = 80;
const PASSWORD: &str = "open sesame";
const PAUSE: Duration = Duration::from_millis(100);
/// Far more than all hashes together take.
const ENDS_WITHIN: Duration = Duration::from_secs(180);

/// What the requests of the attack came to.
#[derive(Debug, Default)]
struct Answered {
    made: AtomicUsize,
    limited: AtomicUsize,
    shed: AtomicUsize,
}

#[test]
fn bulk_requests_full_of_passwords_keep_nobody_from_signing_in() {
    let passwords = length(5, 20);
    // As many bulk requests as the limit allows, and far fewer than there are.
    let bulks_allowed = length(12, 30);
    let rate = format!(
        "limits.password_links_per_user={}/1h",
        passwords * bulks_allowed
    );
    // What is attacked are the hashers: nothing before them turns the requests away.
    let at_once = format!("server.bulk_per_client={CONNECTIONS}");
    let bystander = Bystander::start(&[&rate, &at_once]);
    let attacker = bystander.site().new_token("attacker");
    let locked = lock_a_link(bystander.site());
    let answered = Answered::default();
    bystander.withstand("password links", 96 << 20, |site| {
        thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(|| attack(site, &attacker, passwords, &answered));
            }
            // Visitors of such links share the hashers with the attacker, and still have their turn.
            for _ in 0..length(2, 10) {
                unlock(site, &locked);
            }
        });
    });
    println!("abuse: password links: {answered:?}");
    let [made, limited] =
        [&answered.made, &answered.limited].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(made, bulks_allowed, "bulk requests beyond the limit");
    assert_eq!(limited, CONNECTIONS - bulks_allowed);
}

/// Sends a bulk request until it is answered otherwise than by "come again".
fn attack(site: &Site, token: &str, passwords: usize, answered: &Answered) {
    yield_to_server();
    let link = json!({
        "target": "https://example.com/locked",
        "visibility": "password",
        "password": PASSWORD,
    });
    let bulk = json!({ "links": vec![link; passwords] });
    let request = Request::post("/api/v1/links/bulk")
        .json(&bulk)
        .bearer(token);
    let began = Instant::now();
    while began.elapsed() < ENDS_WITHIN {
        let mut connection = Connection::open(site.http()).unwrap();
        connection.set_timeout(ENDS_WITHIN);
        let answer = connection.send(&request).unwrap();
        let counted = match answer.status {
            200 => &answered.made,
            429 => &answered.limited,
            503 => &answered.shed,
            status => panic!("{status} {}", answer.text()),
        };
        counted.fetch_add(1, Ordering::Relaxed);
        if answer.status == 200 {
            assert_eq!(answer.json().unwrap()["created"], passwords);
            return;
        }
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
        if answer.status == 429 {
            return;
        }
        thread::sleep(PAUSE);
    }
    panic!("never let in");
}

/// Makes a link with a password, as another user, and returns its key.
fn lock_a_link(site: &Site) -> String {
    let link = json!({
        "target": "https://example.com/shared",
        "visibility": "password",
        "password": PASSWORD,
    });
    let made = site.api().post("/api/v1/links", &link).unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    made.json()["key"].as_str().unwrap().to_owned()
}

fn unlock(site: &Site, key: &str) {
    let visitor = [127, 0, 0, 7].into();
    let form = format!("password={}", PASSWORD.replace(' ', "+"));
    let request = Request::post(&format!("/{key}")).body("application/x-www-form-urlencoded", form);
    let mut connection = Connection::open_from(visitor, site.http()).unwrap();
    connection.set_timeout(ENDS_WITHIN);
    let answer = connection.send(&request).unwrap();
    assert_eq!(answer.status, 303, "{}", answer.text());
}
