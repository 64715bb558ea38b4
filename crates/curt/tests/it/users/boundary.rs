//! Many clients at once at the end of what is allowed.

use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::http::Request;
use curt_testkit::stop::Rendezvous;

use super::{BELIEVED_PROXY, create_request, from, new_key, plain_link, run, told_to_wait};
use crate::api::{Answer, Api};
use crate::site::Site;

const CLIENTS: usize = 64;
const REQUESTS_PER_CLIENT: usize = 4;
const ALLOWED: usize = 100;
/// One more is allowed after this time, which no test takes.
const ALLOWANCE: &str = "100/24h";
const ONE_MORE_AFTER: Duration = Duration::from_secs(864);

/// How the requests of a rush were answered.
struct Rush {
    granted: usize,
    refused: Vec<Answer>,
    took: Duration,
}

/// Sends what `compose` makes for each client, all at once. `granted` is the status of a request that was let through.
fn rush(site: &Site, granted: u16, compose: impl Fn(usize) -> Request + Sync) -> Rush {
    let start = Rendezvous::of(CLIENTS);
    let began = Instant::now();
    let answers: Vec<Answer> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (compose, start) = (&compose, &start);
                let mut api = Api::new(site.http(), "");
                scope.spawn(move || {
                    start.wait();
                    let ask = |_| api.send(&compose(client)).unwrap();
                    (0..REQUESTS_PER_CLIENT).map(ask).collect::<Vec<_>>()
                })
            })
            .collect();
        let joined = clients.into_iter().map(|client| client.join().unwrap());
        joined.flatten().collect()
    });
    let (let_through, refused): (Vec<_>, Vec<_>) = answers
        .into_iter()
        .partition(|answer| answer.status == granted);
    Rush {
        granted: let_through.len(),
        refused,
        took: began.elapsed(),
    }
}

impl Rush {
    /// Exactly what is allowed was granted, and everybody else was told the truth about when to come again.
    fn assert_kept_to(&self, what: &str, policy: &str) {
        assert!(self.took < ONE_MORE_AFTER, "{what}: took {:?}", self.took);
        let overshoot = self.granted.saturating_sub(ALLOWED);
        assert!(
            self.granted >= ALLOWED && overshoot <= 1,
            "{what}: {} of {ALLOWED} granted",
            self.granted
        );
        for answer in &self.refused {
            let wait = told_to_wait(answer);
            assert!(
                !wait.is_zero() && wait <= ONE_MORE_AFTER,
                "{what}: {answer:?}"
            );
            let written = format!("\"{policy}\";q={ALLOWED};w=86400");
            assert_eq!(answer.header("ratelimit-policy"), Some(&*written), "{what}");
            let left = answer.header("ratelimit").unwrap_or_default();
            assert!(
                left.starts_with(&format!("\"{policy}\";r=0;t=")),
                "{what}: RateLimit: {left}"
            );
        }
        println!(
            "people: {what}: {CLIENTS} clients, {} requests in {:.1} s, {} granted of {ALLOWED} allowed",
            self.granted + self.refused.len(),
            self.took.as_secs_f64(),
            self.granted
        );
    }
}

fn creation(token: &str) -> Request {
    create_request(&plain_link()).bearer(token)
}

#[test]
fn a_key_makes_exactly_the_links_that_it_may() {
    let site = Site::start(&[]);
    let token = new_key(&site, "tests@example.com", &["--creations", ALLOWANCE]);
    let found = rush(&site, 201, |_| creation(&token));
    found.assert_kept_to("creations of one key", "create");
    let other = site.api().create("https://example.com/").unwrap();
    assert_eq!(other.status, 201, "another key of the same user is limited");
}

#[test]
fn a_user_makes_exactly_the_links_that_they_may_with_all_keys_together() {
    let site = Site::start(&[]);
    let email = "tests@example.com";
    let tokens = [new_key(&site, email, &[]), new_key(&site, email, &[])];
    run(&site, &["user", "limit", email, "--creations", ALLOWANCE]);
    let stranger = site.new_token("somebody-else");
    let found = rush(&site, 201, |client| creation(&tokens[client % 2]));
    found.assert_kept_to("creations of one user with two keys", "create");
    let mut other = Api::new(site.http(), &stranger);
    assert_eq!(other.create("https://example.com/").unwrap().status, 201);
}

#[test]
fn an_address_makes_exactly_the_links_that_it_may_without_an_account() {
    let settings = [
        "server.anonymous_create=true",
        &format!("limits.creations_per_address={ALLOWANCE}"),
        BELIEVED_PROXY,
    ];
    let site = Site::start(&settings);
    let creation_from = |address: &str| from(address, create_request(&plain_link()));
    // The hosts of one IPv6 network are one address to limits.
    let found = rush(&site, 201, |client| {
        creation_from(&format!("2001:db8:1:2::{client:x}"))
    });
    found.assert_kept_to("creations of one address", "create");
    let neighbour = creation_from("2001:db8:1:3::1");
    assert_eq!(site.api().send(&neighbour).unwrap().status, 201);
    assert_eq!(
        site.api().create("https://example.com/").unwrap().status,
        201,
        "whoever has an account has no limit by address"
    );
}

#[test]
fn the_links_of_one_key_or_user_are_followed_exactly_as_often_as_they_may() {
    // Limits that are there before the server starts are known to it from its first request.
    let mut site = Site::new(&[]);
    let token = site.new_token("tests");
    site.use_token(&token);
    let by_key = new_key(&site, "tests@example.com", &["--redirections", ALLOWANCE]);
    let by_user = site.new_token("limited");
    let options = ["--redirections", ALLOWANCE];
    run(
        &site,
        &[&["user", "limit", "limited@example.com"][..], &options].concat(),
    );
    site.restart();
    let link_of = |token: &str| {
        let made = Api::new(site.http(), token)
            .create("https://example.com/")
            .unwrap();
        made.json()["key"].as_str().unwrap().to_owned()
    };
    let free = link_of(site.token());
    for (what, token) in [("key", by_key), ("user", by_user)] {
        let (one, two) = (link_of(&token), link_of(&token));
        let found = rush(&site, 302, |client| {
            Request::get(&format!("/{}", [&one, &two][client % 2]))
        });
        found.assert_kept_to(&format!("clicks of two links of one {what}"), "redirect");
        let unlimited = rush(&site, 302, |_| Request::get(&format!("/{free}")));
        assert_eq!(
            unlimited.granted,
            CLIENTS * REQUESTS_PER_CLIENT,
            "links without a limit must not feel others' limits"
        );
    }
}
