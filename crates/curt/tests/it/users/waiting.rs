//! `Retry-After` is a promise: whoever waits so long is let in.

use std::net::SocketAddr;
use std::thread;

use curt_testkit::http::Request;

use super::{BELIEVED_PROXY, create_request, from, new_key, plain_link, run, told_to_wait};
use crate::api::{Answer, Api};
use crate::length::length;
use crate::site::Site;

/// Requests that a limit ends before it must be there are no limit.
const REQUESTS_MAX: usize = 1_000;

/// Somebody who takes all they may, waits as told, and comes again.
struct Asker {
    what: &'static str,
    request: Request,
    granted: u16,
}

impl Asker {
    fn creates(what: &'static str, token: &str) -> Self {
        let request = create_request(&plain_link()).bearer(token);
        Self {
            what,
            request,
            granted: 201,
        }
    }

    fn come_again(&self, server: SocketAddr, times: usize) {
        let mut api = Api::new(server, "");
        for time in 0..times {
            let refusal = self.take_all(&mut api);
            thread::sleep(told_to_wait(&refusal));
            let answer = api.send(&self.request).unwrap();
            assert_eq!(
                answer.status, self.granted,
                "{}, time {time}: refused after {refusal:?}: {answer:?}",
                self.what
            );
        }
    }

    fn take_all(&self, api: &mut Api) -> Answer {
        for _ in 0..REQUESTS_MAX {
            let answer = api.send(&self.request).unwrap();
            if answer.status != self.granted {
                return answer;
            }
        }
        panic!("{}: no limit after {REQUESTS_MAX} requests", self.what);
    }
}

#[test]
fn whoever_waits_as_told_is_let_in_every_time() {
    let tries = length(100, 1_000);
    let settings = [
        BELIEVED_PROXY,
        "server.anonymous_create=true",
        "limits.creations_per_address=2/1s",
        "limits.misses_per_address=3/1s",
    ];
    let site = Site::start(&settings);
    let askers = askers(&site);
    let times = tries / askers.len();
    thread::scope(|scope| {
        for asker in &askers {
            scope.spawn(|| asker.come_again(site.http(), times));
        }
    });
    println!(
        "people: {} askers waited {times} times each as Retry-After said and were let in {} times of {}",
        askers.len(),
        askers.len() * times,
        askers.len() * times
    );
}

/// One for each kind of limit, and several for those that anybody can meet.
fn askers(site: &Site) -> Vec<Asker> {
    let email = "tests@example.com";
    let key = |options: &[&str]| new_key(site, email, options);
    let limited = site.new_token("limited");
    run(
        site,
        &[
            "user",
            "limit",
            "limited@example.com",
            "--creations",
            "3/2s",
        ],
    );
    let mut askers = vec![
        Asker::creates("links of a key, 20 in 2 s", &key(&["--creations", "20/2s"])),
        Asker::creates("links of a key, 1 in 1 s", &key(&["--creations", "1/1s"])),
        Asker::creates("links of a user, 3 in 2 s", &limited),
        visitor(site, &key(&["--redirections", "4/1s"])),
    ];
    for place in 0..8 {
        askers.push(Asker {
            what: "links of an address, 2 in 1 s",
            request: from(&format!("192.0.2.{place}"), create_request(&plain_link())),
            granted: 201,
        });
        askers.push(Asker {
            what: "misses of an address, 3 in 1 s",
            request: from(&format!("198.51.100.{place}"), Request::get("/nowhere")),
            granted: 404,
        });
    }
    askers
}

fn visitor(site: &Site, token: &str) -> Asker {
    let made = Api::new(site.http(), token)
        .create("https://example.com/")
        .unwrap();
    let key = made.json()["key"].as_str().unwrap().to_owned();
    // A new limit is known within a second.
    thread::sleep(std::time::Duration::from_secs(1));
    Asker {
        what: "clicks of a key's links, 4 in 1 s",
        request: Request::get(&format!("/{key}")),
        granted: 302,
    }
}
