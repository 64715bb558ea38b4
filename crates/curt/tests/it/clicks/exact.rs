//! Without faults: counts are the redirects that were answered, to the last one, by link and by class.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;

use curt_testkit::http::Request;
use serde_json::json;

use super::{
    BROWSER, CAPTURED, Class, Counts, DROPPED, by_browser, clicks_of, metric, new_link, report,
    wait_until_counted,
};
use crate::api::Api;
use crate::length::length;
use crate::site::Site;

const LINKS: usize = 5;
/// More than there are workers, so that both have some.
const VISITORS: usize = 16;

/// By key.
type Answered = BTreeMap<String, Counts>;

#[test]
fn every_redirect_is_counted_once_by_link_and_by_class() {
    let clicks = length(200, 20_000);
    let mut site = Site::start(&["server.workers=2", "clicks.flush_every=100ms"]);
    let keys: Vec<String> = (0..LINKS).map(|_| new_link(&site, &json!({}))).collect();
    let private = new_link(&site, &json!({ "visibility": "private" }));
    let locked = json!({ "visibility": "password", "password": "open sesame" });
    let locked = new_link(&site, &locked);

    let mut answered = Answered::new();
    for seen in click_by_many(site.http(), &keys, clicks) {
        add(&mut answered, seen);
    }
    add(&mut answered, follow_private(&site, &private, 10));
    add(&mut answered, unlock(&site, &locked));
    let orphans = go_astray(&site);
    wait_until_counted(&site);
    let redirected = answered
        .values()
        .copied()
        .fold(Counts::default(), Counts::plus);
    assert_eq!(
        metric(&site, CAPTURED),
        redirected.total() + orphans.total()
    );
    assert_eq!(metric(&site, DROPPED), 0);

    assert!(site.terminate().success());
    site.restart();
    let mut api = site.api();
    for (key, expected) in &answered {
        assert_eq!(clicks_of(&mut api, key), *expected, "/{key}");
    }
    assert_eq!(report(&mut api, "/api/v1/stats"), redirected);
    let operator = site.app().run(&["api-key", "add", "operator"]).unwrap();
    let mut operator = Api::new(site.http(), operator.trim());
    assert_eq!(report(&mut operator, "/api/v1/orphans"), orphans);
    println!("exact: {redirected:?} redirects and {orphans:?} that met no link, all counted");
}

fn add(all: &mut Answered, some: Answered) {
    for (key, counts) in some {
        let sum = all.entry(key).or_default();
        *sum = sum.plus(counts);
    }
}

/// Clicks of every class over connections that are kept. Half of the visitors type a slash behind the key, which is for
/// the router.
fn click_by_many(http: SocketAddr, keys: &[String], clicks: usize) -> Vec<Answered> {
    thread::scope(|scope| {
        let visitors = (0..VISITORS).map(|visitor| {
            scope.spawn(move || {
                let slash = if visitor % 2 == 0 { "" } else { "/" };
                let mut api = Api::new(http, "");
                let mut answered = Answered::new();
                for number in 0..clicks {
                    let key = &keys[(number / Class::ALL.len() + visitor) % keys.len()];
                    let class = Class::ALL[number % Class::ALL.len()];
                    let asked = class.request(&format!("/{key}{slash}"));
                    let answer = api.send(&asked).unwrap();
                    assert_eq!(answer.status, 302, "{answer:?}");
                    answered.entry(key.clone()).or_default().add(class);
                }
                answered
            })
        });
        let visitors: Vec<_> = visitors.collect();
        let seen = visitors.into_iter().map(|visitor| visitor.join().unwrap());
        seen.collect()
    })
}

/// The owner's clicks count, and those that are refused do not.
fn follow_private(site: &Site, key: &str, clicks: usize) -> Answered {
    let mut api = site.api();
    let mut answered = Answered::new();
    for number in 0..clicks {
        let class = Class::ALL[number % Class::ALL.len()];
        let asked = class.request(&format!("/{key}"));
        let refused = api.send(&asked).unwrap();
        assert_eq!(refused.status, 401, "{refused:?}");
        let answer = api.send(&asked.bearer(site.token())).unwrap();
        assert_eq!(answer.status, 302, "{answer:?}");
        answered.entry(key.to_owned()).or_default().add(class);
    }
    answered
}

/// A password that was believed is a click; the form and a wrong one are none.
fn unlock(site: &Site, key: &str) -> Answered {
    let mut api = site.api();
    let path = format!("/{key}");
    let form = "application/x-www-form-urlencoded";
    let show = |password: &str| {
        let shown = Request::post(&path).body(form, format!("password={password}"));
        by_browser(shown)
    };
    let mut status = |request: &Request| api.send(request).unwrap().status;
    assert_eq!(status(&Class::Human.request(&path)), 401);
    assert_eq!(status(&show("open")), 401);
    assert_eq!(status(&show("open+sesame")), 303);
    let mut counts = Counts::default();
    counts.add(Class::Human);
    Answered::from([(key.to_owned(), counts)])
}

/// Clicks that meet no link: unknown keys, one that is gone, and the base URL.
fn go_astray(site: &Site) -> Counts {
    let gone = new_link(site, &json!({}));
    let mut api = site.api();
    assert_eq!(api.delete(&gone).unwrap().status, 204);
    let mut orphans = Counts::default();
    let gone = format!("/{gone}");
    for (path, status) in [("/nosuchkey", 404), (gone.as_str(), 410), ("/", 200)] {
        for class in Class::ALL {
            let answer = api.send(&class.request(path)).unwrap();
            assert_eq!(answer.status, status, "{path}: {answer:?}");
            orphans.add(class);
        }
    }
    // Neither a link nor an orphan: pages and the API are not followed like links.
    let page = Request::get("/api/openapi.json").header("User-Agent", BROWSER);
    assert_eq!(api.send(&page).unwrap().status, 200);
    orphans
}
