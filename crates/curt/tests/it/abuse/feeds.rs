//! Accounts that open every live feed that they get.

use std::io::Read as _;
use std::net::IpAddr;
use std::time::Duration;

use curt_testkit::http::{Connection, Request};

use super::Bystander;
use crate::length::length;
use crate::site::Site;
use crate::wait::eventually;

const BUDGET_BYTES: u64 = 32 << 20;

/// Opens a feed and returns the status; the feed goes on while the connection is kept.
fn open_feed(site: &Site, from: IpAddr, token: &str) -> (u16, Connection) {
    let mut connection = Connection::open_from(from, site.http()).unwrap();
    let request = Request::get("/api/v1/live").bearer(token);
    connection
        .write_raw(&request.encode("feeds.example"))
        .unwrap();
    let mut stream = connection.stream();
    let timeout = Some(Duration::from_secs(60));
    stream.set_read_timeout(timeout).unwrap();
    let mut line = [0; "HTTP/1.1 200".len()];
    stream.read_exact(&mut line).unwrap();
    let line = String::from_utf8(line.to_vec()).unwrap();
    (line[9..].parse().unwrap(), connection)
}

#[test]
fn members_leave_feeds_for_administrators_and_for_other_addresses() {
    // The same proportions as the defaults, 256 feeds, 16 of a user, 64 of an address and 32 for administrators.
    let (max, per_user) = length((32, 4), (256, 16));
    let bystander = Bystander::start(&[
        &format!("server.live_feeds_max={max}"),
        &format!("server.live_feeds_per_user={per_user}"),
        &format!("server.live_feeds_per_address={}", max / 4),
        &format!("server.live_feeds_for_admins={}", max / 8),
    ]);
    let site = bystander.site();
    let admin = "root@example.com";
    site.app()
        .run(&["user", "add", admin, "--role", "admin"])
        .unwrap();
    let printed = site.app().run(&["api-key", "add", "root", "--user", admin]);
    let admin = printed.unwrap().trim().to_owned();
    let members = max / per_user;
    let tokens: Vec<_> = (0..members)
        .map(|member| site.new_token(&format!("member{member}")))
        .collect();
    let address = |last| IpAddr::from([127, 0, 5, last]);
    let feeds = bystander.withstand("live feeds", BUDGET_BYTES, |site| {
        let mut open = Vec::new();
        for (from, left) in [(1, max / 4), (2, max / 4), (3, max / 4), (4, max / 8)] {
            let mut granted = 0;
            // Each address tries all accounts: those before it have used up some of them.
            for token in &tokens {
                for _ in 0..per_user {
                    let (status, feed) = open_feed(site, address(from), token);
                    match status {
                        200 => {
                            granted += 1;
                            open.push(feed);
                        }
                        refused => {
                            assert_eq!(refused, 503);
                            break;
                        }
                    }
                }
            }
            assert_eq!(granted, left, "feeds of address {from}");
        }
        // From an address that has its share, too.
        let (status, feed) = open_feed(site, address(1), &admin);
        assert_eq!(status, 200, "an administrator finds a feed");
        open.push(feed);
        open
    });
    drop(feeds);
    let site = bystander.site();
    eventually(Duration::from_secs(60), || {
        match open_feed(site, address(1), &tokens[0]).0 {
            200 => Ok(()),
            status => Err(format!("closed feeds leave no room: {status}")),
        }
    });
}
