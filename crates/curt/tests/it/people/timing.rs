//! H11: how long a refusal takes does not tell what is behind it.
//!
//! Measured as somebody outside would: over one connection, what is to be told apart in turns, new guesses each time
//! so that nothing is answered from memory, and the slowest tenth left out, which is the machine's noise.

use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::http::{Connection, Request};
use serde_json::json;

use super::{new_key, run};
use crate::alone::alone;
use crate::length::length;
use crate::site::Site;

/// Welch's t beyond which two sorts of answers are told apart.
const T_MAX: f64 = 4.5;
/// Tries before those that count.
const WARM_UP: usize = 50;

/// Requests of one sort, which are all answered with the same status.
struct Sort<'a> {
    name: &'static str,
    compose: Box<dyn Fn() -> Request + 'a>,
}

/// Sends requests of all sorts in turns and returns the times of each sort in microseconds.
fn times(site: &Site, sorts: &[Sort], status: u16, tries: usize) -> Vec<Vec<f64>> {
    let mut connection = Connection::open(site.http()).unwrap();
    let mut times = vec![Vec::with_capacity(tries); sorts.len()];
    for turn in 0..WARM_UP + tries {
        for step in 0..sorts.len() {
            // Backwards every other time: no sort always comes behind the same other one.
            let place = [step, sorts.len() - 1 - step][turn % 2];
            let request = (sorts[place].compose)();
            let sent = Instant::now();
            let answer = connection.send(&request).unwrap();
            let time = sent.elapsed();
            assert_eq!(answer.status, status, "{}: {answer:?}", sorts[place].name);
            if turn >= WARM_UP {
                times[place].push(time.as_secs_f64() * 1e6);
            }
        }
    }
    times
}

/// The sample without its slowest tenth.
fn trimmed(mut sample: Vec<f64>) -> Vec<f64> {
    sample.sort_by(f64::total_cmp);
    sample.truncate(sample.len() - sample.len() / 10);
    sample
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
    (mean_one - mean_two) / error.sqrt()
}

/// No two sorts can be told apart by their times.
fn assert_alike(what: &str, site: &Site, sorts: &[Sort], status: u16, tries: usize) {
    let times = times(site, sorts, status, tries);
    let times: Vec<Vec<f64>> = times.into_iter().map(trimmed).collect();
    for (place, sort) in sorts.iter().enumerate().skip(1) {
        let t = welch_t(&times[0], &times[place]);
        let (mean_one, _) = mean_and_variance(&times[0]);
        let (mean_two, _) = mean_and_variance(&times[place]);
        println!(
            "people: {what}: {} ({mean_one:.1} µs) and {} ({mean_two:.1} µs), {tries} tries each: Welch t {t:.2}",
            sorts[0].name, sort.name
        );
        assert!(
            t.abs() < T_MAX,
            "{what}: {} is told from {}: t = {t}",
            sorts[0].name,
            sort.name
        );
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
    let soon = jiff::Timestamp::now().as_millisecond() + 500;
    let soon = jiff::Timestamp::from_millisecond(soon).unwrap();
    let options = ["--expires", &soon.to_string()];
    let expired = new_key(&site, "tests@example.com", &options);
    let revoked = site.new_token("tests");
    run(&site, &["key", "revoke", prefix(&revoked)]);
    let kept_out = site.new_token("kept-out");
    run(&site, &["user", "disable", "kept-out@example.com"]);
    thread::sleep(Duration::from_secs(1));
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

#[test]
fn unknown_users_and_wrong_passwords_are_alike_in_time() {
    let _alone = alone();
    // A hash that costs next to nothing hides no difference.
    let cheap = [
        "accounts.password_memory=64KiB",
        "accounts.password_passes=1",
    ];
    let free = [
        "limits.sign_ins_per_address=",
        "limits.sign_ins_per_account=",
    ];
    let site = Site::start(&[cheap, free].concat());
    let known = "somebody@example.com";
    let options = cheap.map(|setting| ["--set", setting]).concat();
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
    assert_alike("signing in", &site, &sorts, 401, length(1_000, 10_000));
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
    let sorts = [sort("absent link", symbols(7)), sort("hidden link", hidden)];
    assert_alike("private links", &site, &sorts, 404, length(1_000, 10_000));
}
