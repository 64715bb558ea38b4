//! A server that may open few files, and clients who take every connection that they get.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use curt_testkit::http::{Connection, Request};

use super::is_turned_away;
use crate::site::Site;
use crate::wait::eventually;

/// What the system allows the server.
const FILES_MAX: u32 = 300;
/// More than that, from several addresses, none of which takes more than its share.
const ADDRESSES: u8 = 10;
const CONNECTIONS_PER_ADDRESS: usize = 40;
/// Clicks with long headers: several segments of the spool.
const CLICKS: usize = 400;
const AGENT_BYTES: usize = 2_000;

#[test]
fn connections_leave_files_for_the_spool() {
    let settings = [
        "clicks.spool_segment=64KiB",
        "clicks.flush_every=1s",
        "server.idle_timeout=300s",
    ];
    let site = Site::start_with_files(&settings, FILES_MAX);
    let warned = site.server().logs();
    assert!(warned.contains("server.connections_max"), "{warned}");
    let made = site.api().create("https://example.com/").unwrap();
    let key = made.json()["key"].as_str().unwrap().to_owned();
    let mut visitor = Connection::open(site.http()).unwrap();
    let click = Request::get(&format!("/{key}")).header("User-Agent", "x".repeat(AGENT_BYTES));
    assert_eq!(visitor.send(&click).unwrap().status, 302);
    let mut open = Vec::new();
    for last in 1..=ADDRESSES {
        let source = IpAddr::V4(Ipv4Addr::new(127, 0, 3, last));
        for _ in 0..CONNECTIONS_PER_ADDRESS {
            open.push(Connection::open_from(source, site.http()).unwrap());
        }
    }
    eventually(Duration::from_secs(60), || {
        let held = open
            .iter()
            .filter(|connection| !is_turned_away(connection.stream()));
        let held = held.count();
        match held < FILES_MAX as usize - 100 {
            true => Ok(()),
            false => Err(format!("{held} connections are open")),
        }
    });
    for _ in 1..CLICKS {
        assert_eq!(visitor.send(&click).unwrap().status, 302);
    }
    eventually(Duration::from_secs(60), || {
        let metrics = site.metrics();
        let counted = metrics.get("curt_clicks_counted_total").unwrap_or_default();
        match counted as usize {
            CLICKS => Ok(()),
            counted => {
                let dropped = metrics.matching(|name| name.starts_with("curt_clicks_dropped"));
                Err(format!(
                    "{counted} of {CLICKS} clicks are counted; {dropped:?}"
                ))
            }
        }
    });
    let logs = site.server().logs();
    assert!(!logs.contains("Too many open files"), "{logs}");
}
