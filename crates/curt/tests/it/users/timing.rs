//! H11: how long a refusal takes does not tell what is behind it.
//!
//! Measured as somebody outside would: over one connection, what is to be told apart in turns, new guesses each time
//! so that nothing is answered from memory. `make soak` compares the times, with the slow ones among them: refusals
//! wait for the end of a step, so that how often they miss one is what could tell them apart. `make test` runs beside
//! other work and asserts what cannot be late: that every refusal waited.

use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::http::{Connection, Request};
use serde_json::json;

use super::{new_key, run};
use crate::alone::alone;
use crate::length::{is_full, length};
use crate::site::Site;

/// Welch's t beyond which two sorts of answers are told apart.
const T_MAX: f64 = 4.5;
/// Tries before those that count, where times are compared.
const WARM_UP: usize = 50;
/// What a refusal takes at least, in microseconds.
const STEP: f64 = 5_000.0;
/// Tries of each sort where times are not compared.
const SHORT_TRIES: usize = 30;

/// Requests of one sort, which are all answered with the same status.
struct Sort<'a> {
    name: &'static str,
    compose: Box<dyn Fn() -> Request + 'a>,
}

/// Sends requests of all sorts in turns and returns the times of each sort in microseconds.
fn times(site: &Site, sorts: &[Sort], status: u16, tries: usize) -> Vec<Vec<f64>> {
    let mut connection = Connection::open(site.http()).unwrap();
    let mut times = vec![Vec::with_capacity(tries); sorts.len()];
    let warm_up = length(1, WARM_UP);
    for turn in 0..warm_up + tries {
        for step in 0..sorts.len() {
            // Backwards every other time: no sort always comes behind the same other one.
            let place = [step, sorts.len() - 1 - step][turn % 2];
            let request = (sorts[place].compose)();
            let sent = Instant::now();
            let answer = connection.send(&request).unwrap();
            let time = sent.elapsed();
            assert_eq!(answer.status, status, "{}: {answer:?}", sorts[place].name);
            if turn >= warm_up {
                times[place].push(time.as_secs_f64() * 1e6);
            }
        }
    }
    times
}

/// The sample without a tenth at each end: what is left shows differences that the noise of a machine hides.
fn middle(sample: &[f64]) -> Vec<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let tenth = sorted.len() / 10;
    sorted[tenth..sorted.len() - tenth].to_vec()
}

/// Whether each time is longer than most by half a step and more, as one and zero.
fn late(sample: &[f64], most: f64) -> Vec<f64> {
    let is_late = |time: &f64| f64::from(u8::from(*time > most + STEP / 2.0));
    sample.iter().map(is_late).collect()
}

fn mean_and_variance(sample: &[f64]) -> (f64, f64) {
    let size = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / size;
    let squares = sample.iter().map(|time| (time - mean).powi(2));
    (mean, squares.sum::<f64>() / (size - 1.0))
}

fn welch_t(one: &[f64], two: &[f64]) -> f64 {
    let ((mean_one, variance_one), (mean_two, variance_two)) =
        (mean_and_variance(one), mean_and_variance(two));
    let error = variance_one / one.len() as f64 + variance_two / two.len() as f64;
    match error > 0.0 {
        true => (mean_one - mean_two) / error.sqrt(),
        false => 0.0,
    }
}

/// No two sorts can be told apart by their times: not by all of them, not by those in the middle, and not by how many
/// are late.
fn assert_alike(what: &str, site: &Site, sorts: &[Sort], status: u16, tries: usize) {
    let tries = length(tries.min(SHORT_TRIES), tries);
    let times = times(site, sorts, status, tries);
    for (sort, times) in sorts.iter().zip(&times) {
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(least >= STEP, "{what}: {} took {least} µs", sort.name);
    }
    let most = middle(&times[0])[times[0].len() * 2 / 5];
    for (place, sort) in sorts.iter().enumerate().skip(1) {
        let (one, two) = (&times[0], &times[place]);
        let tests = [
            ("all times", welch_t(one, two)),
            ("the middle ones", welch_t(&middle(one), &middle(two))),
            ("late ones", welch_t(&late(one, most), &late(two, most))),
        ];
        let mean = |sample: &[f64]| mean_and_variance(sample).0;
        println!(
            "people: {what}: {} ({:.1} µs, {:.4} late) and {} ({:.1} µs, {:.4} late), {tries} tries each: Welch t {tests:.2?}",
            sorts[0].name,
            mean(one),
            mean(&late(one, most)),
            sort.name,
            mean(two),
            mean(&late(two, most)),
        );
        for (of, t) in tests {
            assert!(
                t.abs() < T_MAX || !is_full(),
                "{what}: {} is told from {} by {of}: t = {t}",
                sorts[0].name,
                sort.name
            );
        }
    }
}

fn symbols(count: usize) -> String {
    let symbol = |_| char::from(rand::random_range(b'a'..=b'z'));
    (0..count).map(symbol).collect()
}

fn guess(prefix: &str) -> String {
    format!("curt_{prefix}_{}", symbols(32))
}

fn prefix(token: &str) -> &str {
    token.split('_').nth(1).unwrap()
}

#[test]
fn refused_api_keys_are_alike_in_time() {
    let _alone = alone();
    let site = Site::start(&[]);
    let list = |token: &str| Request::get("/api/v1/links").bearer(token);
    let known = prefix(site.token()).to_owned();
    let unknown = symbols(8);
    let near = site.token()[..site.token().len() - 4].to_owned();
    let sorts = [
        Sort {
            name: "unknown key",
            compose: Box::new(|| list(&guess(&unknown))),
        },
        Sort {
            name: "wrong secret of a key",
            compose: Box::new(|| list(&guess(&known))),
        },
        Sort {
            name: "nearly the secret of a key",
            compose: Box::new(|| list(&format!("{near}{}", symbols(4)))),
        },
    ];
    assert_alike("API keys", &site, &sorts, 401, length(1_000, 10_000));
}

#[test]
fn ended_api_keys_and_unknown_ones_are_alike_in_time() {
    let _alone = alone();
    let site = Site::start(&[]);
    let soon = jiff::Timestamp::now() + Duration::from_millis(length(4_000, 500));
    let options = ["--expires", &soon.to_string()];
    let expired = new_key(&site, "tests@example.com", &options);
    let revoked = site.new_token("tests");
    run(&site, &["api-key", "revoke", prefix(&revoked)]);
    let kept_out = site.new_token("kept-out");
    run(&site, &["user", "disable", "kept-out@example.com"]);
    // When it has expired, and when what was taken away is known everywhere.
    let rest = soon
        .duration_since(jiff::Timestamp::now())
        .as_millis()
        .max(0);
    thread::sleep(Duration::from_secs(1) + Duration::from_millis(rest as u64));
    let sort = |name, token: String| Sort {
        name,
        compose: Box::new(move || Request::get("/api/v1/links").bearer(&token)),
    };
    let sorts = [
        sort("unknown key", guess(&symbols(8))),
        sort("revoked key", revoked),
        sort("expired key", expired),
        sort("key of a disabled user", kept_out),
    ];
    assert_alike("ended API keys", &site, &sorts, 401, length(1_000, 10_000));
}

/// Compares refusals of unknown users with those of wrong passwords.
fn compare_sign_ins(what: &str, hashing: &[&str], tries: usize) {
    let _alone = alone();
    let free = [
        "limits.sign_ins_per_address=",
        "limits.sign_ins_per_account=",
    ];
    let site = Site::start(&[hashing, &free].concat());
    let known = "somebody@example.com";
    let options: Vec<&str> = hashing.iter().flat_map(|set| ["--set", set]).collect();
    run(&site, &[&["user"][..], &options, &["add", known]].concat());
    let sort = |name, email: &'static str| Sort {
        name,
        compose: Box::new(move || {
            let shown = json!({ "email": email, "password": symbols(12) });
            Request::post("/api/v1/sessions").json(&shown)
        }),
    };
    let sorts = [
        sort("unknown user", "nobody-x@example.com"),
        sort("wrong password", known),
    ];
    assert_alike(what, &site, &sorts, 401, tries);
}

#[test]
fn unknown_users_and_wrong_passwords_are_alike_in_time() {
    // A hash that costs next to nothing hides no difference.
    let cheap = [
        "accounts.password_memory=64KiB",
        "accounts.password_passes=1",
    ];
    compare_sign_ins("signing in", &cheap, 10_000);
}

#[test]
fn unknown_users_and_wrong_passwords_are_alike_in_time_at_the_shipped_cost() {
    compare_sign_ins("signing in at the shipped cost", &[], length(5, 1_000));
}

#[test]
fn hidden_links_and_absent_ones_are_alike_in_time() {
    let _alone = alone();
    let site = Site::start(&["links.private_denied=404", "limits.misses_per_address="]);
    let stranger = site.new_token("stranger");
    let link = json!({ "target": "https://example.com/", "visibility": "private" });
    let made = site.api().post("/api/v1/links", &link).unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    let hidden = made.json()["key"].as_str().unwrap().to_owned();
    let sort = |name, key: String| {
        let token = stranger.clone();
        Sort {
            name,
            compose: Box::new(move || Request::get(&format!("/{key}")).bearer(&token)),
        }
    };
    let sorts = [
        sort("absent link", symbols(7)),
        sort("hidden link", hidden.clone()),
    ];
    assert_alike("private links", &site, &sorts, 404, length(1_000, 10_000));
    // Nobody in particular learns no more.
    let sort = |name, key: String| Sort {
        name,
        compose: Box::new(move || Request::get(&format!("/{key}"))),
    };
    let sorts = [sort("absent link", symbols(7)), sort("hidden link", hidden)];
    let what = "private links without credentials";
    assert_alike(what, &site, &sorts, 404, length(1_000, 10_000));
}
