//! H13: thousands of guesses at passwords.

use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::http::Request;
use serde_json::json;

use super::{BELIEVED_PROXY, from, told_to_wait};
use crate::api::Answer;
use crate::length::length;
use crate::site::Site;

const GUESSERS: usize = 8;
const PASSWORD: &str = "correct horse battery staple";
const MINUTE: Duration = Duration::from_secs(60);

/// Many times what any limit lets through.
fn guesses() -> usize {
    length(300, 10_000)
}

/// How many of many guesses were listened to.
struct Storm {
    heard: usize,
    took: Duration,
}

/// Sends all guesses as fast as the server takes them; those that are listened to are wrong.
fn storm(site: &Site, compose: impl Fn(usize) -> Request + Sync) -> Storm {
    let began = Instant::now();
    let heard = thread::scope(|scope| {
        let guessers: Vec<_> = (0..GUESSERS)
            .map(|guesser| {
                let (mut api, compose) = (site.api(), &compose);
                scope.spawn(move || {
                    let mut heard = 0;
                    for number in (guesser..guesses()).step_by(GUESSERS) {
                        let answer = api.send(&compose(number)).unwrap();
                        match answer.status {
                            401 => heard += 1,
                            _ => assert!(told_to_wait(&answer) > Duration::ZERO),
                        }
                    }
                    heard
                })
            })
            .collect();
        let heard = guessers.into_iter().map(|guesser| guesser.join().unwrap());
        heard.sum()
    });
    Storm {
        heard,
        took: began.elapsed(),
    }
}

impl Storm {
    /// No more were heard than in each period that began, and half of it was used up at once.
    fn assert_limited(&self, what: &str, amount: usize, period: Duration) {
        let periods = (self.took.as_secs_f64() / period.as_secs_f64()).ceil() as usize;
        let (at_once, allowed) = (amount.div_ceil(2), amount * periods.max(1));
        assert!(
            (at_once..=allowed).contains(&self.heard),
            "{what}: {} heard, {allowed} allowed",
            self.heard
        );
        println!(
            "people: {what}: {} guesses in {:.1} s, {} heard, {allowed} allowed",
            guesses(),
            self.took.as_secs_f64(),
            self.heard
        );
    }
}

fn address(number: usize) -> String {
    format!("198.51.100.{number}")
}

fn guess(number: usize) -> String {
    format!("guess number {number}")
}

fn unlock(key: &str, password: &str) -> Request {
    let form = format!("password={}", password.replace(' ', "+"));
    Request::post(&format!("/{key}")).body("application/x-www-form-urlencoded", form)
}

fn sign_in(email: &str, password: &str) -> Request {
    let shown = json!({ "email": email, "password": password });
    Request::post("/api/v1/sessions").json(&shown)
}

fn send_from(site: &Site, number: usize, request: Request) -> Answer {
    site.api().send(&from(&address(number), request)).unwrap()
}

/// Refused now, and let in by waiting as told, however often others guess.
fn assert_in_after_waiting(site: &Site, number: usize, request: &Request, status: u16) {
    let refused = send_from(site, number, request.clone());
    thread::sleep(told_to_wait(&refused));
    let answer = send_from(site, number, request.clone());
    assert_eq!(answer.status, status, "{answer:?}");
}

#[test]
fn guesses_at_a_links_password_are_limited_by_address_and_by_link() {
    let site = Site::start(&[BELIEVED_PROXY]);
    let locked = || {
        let link = json!({ "target": "https://example.com/", "visibility": "password", "password": PASSWORD });
        let made = site.api().post("/api/v1/links", &link).unwrap();
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["key"].as_str().unwrap().to_owned()
    };
    let (key, other) = (locked(), locked());

    let one = storm(&site, |number| {
        from(&address(1), unlock(&key, &guess(number)))
    });
    one.assert_limited("one address at a link's password", 5, MINUTE);
    let honest = send_from(&site, 2, unlock(&key, PASSWORD));
    assert_eq!(honest.status, 303, "{honest:?}");
    assert_eq!(honest.header("location"), Some("https://example.com/"));
    assert_eq!(send_from(&site, 1, unlock(&other, PASSWORD)).status, 303);
    assert_in_after_waiting(&site, 1, &unlock(&key, PASSWORD), 303);

    let many = storm(&site, |number| {
        let address = address(100 + number / GUESSERS % 50);
        from(&address, unlock(&other, &guess(number)))
    });
    many.assert_limited("50 addresses at a link's password", 50, MINUTE);
    assert_in_after_waiting(&site, 3, &unlock(&other, PASSWORD), 303);
}

#[test]
fn guesses_at_an_accounts_password_are_limited_by_address_and_by_account() {
    let settings = [BELIEVED_PROXY, "limits.sign_ins_per_account=20/1m"];
    let site = Site::start(&settings);
    let [ann, bob] = ["ann", "bob"].map(|name| {
        let email = format!("{name}@example.com");
        let password = super::run(&site, &["user", "add", &email]);
        (email, password)
    });

    let one = storm(&site, |number| {
        from(&address(1), sign_in(&ann.0, &guess(number)))
    });
    one.assert_limited("one address at one account", 10, MINUTE);
    let honest = send_from(&site, 2, sign_in(&ann.0, &ann.1));
    assert_eq!(honest.status, 201, "{honest:?}");

    let spray = storm(&site, |number| {
        let email = format!("person-{number}@example.com");
        from(&address(3), sign_in(&email, &guess(number)))
    });
    spray.assert_limited("one address at many accounts", 10, MINUTE);

    let many = storm(&site, |number| {
        let address = address(100 + number / GUESSERS % 50);
        from(&address, sign_in(&bob.0, &guess(number)))
    });
    many.assert_limited("50 addresses at one account", 20, MINUTE);
    assert_in_after_waiting(&site, 4, &sign_in(&bob.0, &bob.1), 201);
    let honest = send_from(&site, 5, sign_in(&ann.0, &ann.1));
    assert_eq!(honest.status, 201, "others must not notice: {honest:?}");
}
