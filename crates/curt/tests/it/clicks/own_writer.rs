//! Counting has a database of its own: what holds it up holds up nothing else (C-2).

use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;

use super::{Class, clicks_of, new_link, wait_until_counted};
use crate::api::Api;
use crate::site::Site;
use crate::wait::eventually;

const CREATES: usize = 20;
const FLUSHED: &str = "curt_click_flushes_total";

/// Whether a flush has met the lock that the test holds: it has, once something waits to be counted and is not.
#[test]
fn nothing_but_counting_waits_for_a_flush_c2() {
    // Longer than the test: a flush that is held up neither ends nor fails while links are made.
    let settings = [
        "clicks.flush_every=50ms",
        "sqlite.busy_timeout=60s",
        "server.workers=1",
    ];
    let mut site = Site::start(&settings);
    let plain = new_link(&site, &json!({}));
    let limited = new_link(&site, &json!({ "max_clicks": 1_000 }));
    let mut api = site.api();
    assert_eq!(follow(&mut api, &plain), 302);
    wait_until_counted(&site);
    let flushed = super::metric(&site, FLUSHED);

    let held = hold(&site.folder().join("data/clicks.db"));
    assert_eq!(follow(&mut api, &plain), 302);
    // The window is over and its flush waits for the lock: longer than any pause of the consumer.
    thread::sleep(Duration::from_secs(1));
    assert_eq!(super::metric(&site, FLUSHED), flushed, "the flush waits");
    for n in 0..CREATES {
        let made = api.create(&format!("https://example.com/{n}")).unwrap();
        assert_eq!(made.status, 201, "{}", made.text());
        assert_eq!(follow(&mut api, &limited), 302);
    }
    assert_eq!(
        super::metric(&site, FLUSHED),
        flushed,
        "the flush still waits"
    );

    held.execute_batch("ROLLBACK").unwrap();
    drop(held);
    wait_until_counted(&site);
    assert_eq!(clicks_of(&mut api, &limited).human, CREATES as u64, "C-1");
    assert_eq!(clicks_of(&mut api, &plain).human, 2, "C-1");
    assert!(site.terminate().success());
}

/// A transaction that nobody else can write beside.
fn hold(file: &Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    eventually(Duration::from_secs(10), || {
        connection
            .execute_batch("BEGIN IMMEDIATE")
            .map_err(|error| error.to_string())
    });
    connection
}

fn follow(api: &mut Api, key: &str) -> u16 {
    let request = Class::Human.request(&format!("/{key}"));
    api.send(&request).unwrap().status
}
