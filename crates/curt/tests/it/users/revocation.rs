//! L-2 for people: what is taken away stops working within a second, for whoever uses it all the time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::http::Request;
use curt_testkit::stop::SetOnDrop;
use serde_json::{Value, json};

use super::browser::Browser;
use super::{new_key, run};
use crate::api::{Answer, Api};
use crate::length::{length, time_max};
use crate::site::Site;
use crate::wait::eventually;

const STOPS_WITHIN: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often a thing is used before it is taken away, and after it was first refused.
const LOOKS_BEFORE: usize = 5;
const LOOKS_AFTER: usize = 10;

const ANN: &str = "ann@example.com";
const BOB: &str = "bob@example.com";

/// An answer and when it was asked for.
struct Look {
    at: Instant,
    status: u16,
}

/// What somebody saw who uses a thing all the time.
#[derive(Default)]
struct Watch {
    looks: Mutex<Vec<Look>>,
    stop: AtomicBool,
}

impl Watch {
    /// Sends the request over one connection again and again until told to stop.
    fn run(&self, site: &Site, request: &Request) {
        let mut api = Api::new(site.http(), "");
        while !self.stop.load(Ordering::Relaxed) {
            let at = Instant::now();
            let status = api.send(request).unwrap().status;
            self.looks.lock().unwrap().push(Look { at, status });
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until there are so many answers with this status.
    fn wait_for(&self, status: u16, count: usize) {
        eventually(5 * STOPS_WITHIN, || {
            let looks = self.looks.lock().unwrap();
            let seen = looks.iter().filter(|look| look.status == status).count();
            match seen >= count {
                true => Ok(()),
                false => Err(format!("{status} came {seen} times of {count}")),
            }
        });
    }
}

/// Uses something while it is taken away. `works` and `ended` are the answers before and after; whoever asks later than
/// a second after the change was acknowledged must get the second, and nobody who got it the first again.
fn assert_ends(
    site: &Site,
    what: &str,
    request: &Request,
    (works, ended): (u16, u16),
    take_away: impl FnOnce(),
) -> Duration {
    let watch = Watch::default();
    let acknowledged = thread::scope(|scope| {
        scope.spawn(|| watch.run(site, request));
        let _end = SetOnDrop::of(&watch.stop);
        watch.wait_for(works, LOOKS_BEFORE);
        take_away();
        let acknowledged = Instant::now();
        watch.wait_for(ended, LOOKS_AFTER);
        acknowledged
    });
    let looks = watch.looks.into_inner().unwrap();
    let statuses: Vec<u16> = looks.iter().map(|look| look.status).collect();
    let old = statuses.iter().filter(|status| **status == works).count();
    assert!(
        statuses[..old].iter().all(|status| *status == works)
            && statuses[old..].iter().all(|status| *status == ended)
            && old < statuses.len(),
        "{what}: {statuses:?}"
    );
    let last = looks[old - 1].at.saturating_duration_since(acknowledged);
    assert!(
        last <= time_max(STOPS_WITHIN),
        "{what}: still worked after {last:?}"
    );
    println!(
        "people: {what}: worked for the last time {} ms after the change",
        last.as_millis()
    );
    last
}

/// Two people, and an administrator's key.
struct World {
    site: Site,
    admin: String,
    passwords: [String; 2],
}

impl World {
    fn new() -> Self {
        let settings = [
            "limits.sign_ins_per_address=",
            "limits.sign_ins_per_account=",
        ];
        let site = Site::start(&settings);
        let passwords = [ANN, BOB].map(|email| run(&site, &["user", "add", email]));
        let admin = run(&site, &["api-key", "add", "admin"]);
        Self {
            site,
            admin,
            passwords,
        }
    }

    fn ann(&self) -> Browser {
        Browser::sign_in(&self.site, ANN, &self.passwords[0])
    }

    fn send(&self, token: &str, request: Request) -> Answer {
        let answer = Api::new(self.site.http(), token).send(&request.bearer(token));
        let answer = answer.unwrap();
        assert!(answer.status < 300, "{answer:?}");
        answer
    }

    fn change(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        self.send(token, Request::new(method, path).json(body))
    }

    /// A new link of the key's user.
    fn link(&self, token: &str, visibility: &str) -> String {
        let link = json!({ "target": "https://example.com/", "visibility": visibility });
        let made = self.change(token, "POST", "/api/v1/links", &link);
        made.json()["key"].as_str().unwrap().to_owned()
    }

    fn set_disabled(&self, disabled: bool) {
        let listed = self.send(&self.admin, Request::get("/api/v1/users"));
        let listed = listed.json();
        let users = listed["users"].as_array().unwrap();
        let ann = users.iter().find(|user| user["email"] == ANN).unwrap();
        let path = format!("/api/v1/users/{}", ann["id"].as_str().unwrap());
        self.change(
            &self.admin,
            "PATCH",
            &path,
            &json!({ "disabled": disabled }),
        );
    }
}

fn prefix(token: &str) -> &str {
    token.split('_').nth(1).unwrap()
}

fn list(token: &str) -> Request {
    Request::get("/api/v1/links").bearer(token)
}

fn list_in(browser: &Browser) -> Request {
    browser.signed(Request::get("/api/v1/links"))
}

#[test]
fn keys_sessions_and_users_that_are_ended_stop_within_a_second() {
    let world = World::new();
    let site = &world.site;
    let mut longest = Duration::ZERO;
    let mut ends = |what: &str, request: &Request, take_away: &dyn Fn()| {
        let taken = assert_ends(site, what, request, (200, 401), take_away);
        longest = longest.max(taken);
    };
    for _ in 0..length(1, 10) {
        let keys = [(); 3].map(|()| new_key(site, ANN, &[]));
        ends("a key revoked by API", &list(&keys[0]), &|| {
            let path = format!("/api/v1/keys/{}", prefix(&keys[0]));
            world.send(&keys[1], Request::new("DELETE", &path));
        });
        ends("a key revoked by command", &list(&keys[1]), &|| {
            run(site, &["api-key", "revoke", prefix(&keys[1])]);
        });

        let [here, there] = [world.ann(), world.ann()];
        ends("a session ended elsewhere", &list_in(&there), &|| {
            let id = there.secret().split('_').nth(1).unwrap();
            let end = Request::new("DELETE", &format!("/api/v1/sessions/{id}"));
            assert_eq!(here.send(end).status, 204);
        });
        ends("sessions ended by command", &list_in(&here), &|| {
            run(site, &["user", "sign-out", ANN]);
        });

        ends(
            "the key of a user disabled by API",
            &list(&keys[2]),
            &|| {
                world.set_disabled(true);
            },
        );
        world.set_disabled(false);
        let browser = world.ann();
        ends(
            "the session of a user disabled by command",
            &list_in(&browser),
            &|| {
                run(site, &["user", "disable", ANN]);
            },
        );
        run(site, &["user", "enable", ANN]);
        let wait = Instant::now();
        while Api::new(site.http(), &keys[2])
            .get("/api/v1/links")
            .unwrap()
            .status
            != 200
        {
            assert!(
                wait.elapsed() <= time_max(STOPS_WITHIN + Duration::from_millis(300)),
                "an enabled user stays out"
            );
        }
    }
    println!("people: keys, sessions and users stopped after {longest:?} at worst");
}

#[test]
fn links_that_are_closed_are_not_followed_a_second_later() {
    let world = World::new();
    let site = &world.site;
    let ann = new_key(site, ANN, &[]);
    let bob = new_key(site, BOB, &[]);
    let mut longest = Duration::ZERO;
    let mut ends = |what: &str, request: &Request, statuses, take_away: &dyn Fn()| {
        let taken = assert_ends(site, what, request, statuses, take_away);
        longest = longest.max(taken);
    };
    for _ in 0..length(1, 10) {
        let shared = world.link(&ann, "private");
        let permissions = format!("/api/v1/links/{shared}/permissions");
        let granted = world.change(&ann, "POST", &permissions, &json!({ "email": BOB }));
        let id = granted.json()["id"].as_str().unwrap().to_owned();
        let click = Request::get(&format!("/{shared}")).bearer(&bob);
        ends("a permission", &click, (302, 403), &|| {
            let path = format!("{permissions}/{id}");
            world.send(&ann, Request::new("DELETE", &path));
        });

        for (visibility, more) in [("private", Value::Null), ("password", json!("open sesame"))] {
            let open = world.link(&ann, "public");
            let what = format!("a public link that becomes {visibility}");
            ends(
                &what,
                &Request::get(&format!("/{open}")),
                (302, 401),
                &|| {
                    let mut change = json!({ "visibility": visibility });
                    if !more.is_null() {
                        change["password"] = more.clone();
                    }
                    world.change(&ann, "PATCH", &format!("/api/v1/links/{open}"), &change);
                },
            );
        }

        let reported = world.link(&ann, "public");
        let switch = |way: &str| {
            let path = format!("/api/v1/links/{reported}/{way}");
            world.send(&world.admin, Request::post(&path));
        };
        let click = Request::get(&format!("/{reported}"));
        ends("a link that is switched off", &click, (302, 410), &|| {
            switch("disable");
        });
        ends("a link that is switched on", &click, (410, 302), &|| {
            switch("enable");
        });
    }
    println!("people: links were closed after {longest:?} at worst");
}
