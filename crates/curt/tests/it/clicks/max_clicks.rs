//! A link for so many people, and not one more.

use std::net::SocketAddr;
use std::thread;

use curt_testkit::http::Request;
use serde_json::json;

use super::{Class, clicks_of, new_link, wait_until_counted};
use crate::api::Api;
use crate::site::Site;

const VISITORS: usize = 64;
const MOST: u64 = 100;

#[test]
fn a_link_lets_as_many_people_through_as_it_says_and_then_is_gone() {
    let mut site = Site::start(&["server.workers=2", "clicks.flush_every=100ms"]);
    let key = new_link(&site, &json!({ "max_clicks": MOST }));
    let mut api = site.api();
    // What is no person's click takes nothing away, and sees nothing.
    for class in [Class::Head, Class::Bot, Class::Prefetch] {
        for _ in 0..MOST / 4 {
            assert_refused(&mut api, class.request(&format!("/{key}")));
        }
    }
    assert_refused(&mut api, Request::get(&format!("/{key}")));
    let curl = Request::get(&format!("/{key}")).header("User-Agent", "curl/8.14.1");
    assert_refused(&mut api, curl);
    assert_eq!(all_that_get_through(site.http(), &key), MOST);
    for class in Class::ALL {
        assert_eq!(click(&mut api, &key, class), 410, "{class:?}");
    }

    // What was taken stays taken: after a crash, and when the limit is raised.
    site.kill();
    site.restart();
    let mut api = site.api();
    assert_eq!(click(&mut api, &key, Class::Human), 410);
    let raised = api.edit(&key, &json!({ "max_clicks": MOST + 10 })).unwrap();
    assert_eq!(raised.json()["max_clicks"], MOST + 10);
    assert_eq!(all_that_get_through(site.http(), &key), 10);
    api.edit(&key, &json!({ "max_clicks": null })).unwrap();
    assert_eq!(click(&mut api, &key, Class::Human), 302);

    wait_until_counted(&site);
    assert!(site.terminate().success());
    site.restart();
    let counts = clicks_of(&mut site.api(), &key);
    assert_eq!(counts.human, MOST + 10 + 1, "{counts:?}");
    assert_eq!((counts.head, counts.bot, counts.prefetch), (0, 0, 0));
}

/// Neither the headers nor the body tell where the link leads.
fn assert_refused(api: &mut Api, request: Request) {
    let answer = api.send(&request).unwrap();
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(!format!("{answer:?}").contains("example.com"), "{answer:?}");
    assert_eq!(
        answer.header("cache-control"),
        Some("no-store"),
        "{answer:?}"
    );
}

fn click(api: &mut Api, key: &str, class: Class) -> u16 {
    api.send(&class.request(&format!("/{key}"))).unwrap().status
}

/// Everybody comes at once and until the link is gone; says how many clicks were let through.
fn all_that_get_through(http: SocketAddr, key: &str) -> u64 {
    thread::scope(|scope| {
        let visitors = (0..VISITORS).map(|_| {
            scope.spawn(move || {
                let mut api = Api::new(http, "");
                let mut through = 0;
                loop {
                    match click(&mut api, key, Class::Human) {
                        302 => through += 1,
                        410 => return through,
                        status => panic!("{status}"),
                    }
                }
            })
        });
        let visitors: Vec<_> = visitors.collect();
        let through = visitors.into_iter().map(|visitor| visitor.join().unwrap());
        through.sum()
    })
}
