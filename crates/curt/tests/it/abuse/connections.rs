//! One address opens as many connections as the server may hold, and says nothing.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use curt_testkit::http::{Connection, Request};
use curt_testkit::skipped;

use super::{Bystander, is_turned_away};
use crate::length::length;
use crate::wait::eventually;

const BUDGET_BYTES: u64 = 32 << 20;

#[test]
fn idle_connections_of_one_address_leave_room_for_others() {
    let connections: usize = length(400, 16_000);
    let files = connections as u64 + 500;
    match rlimit::increase_nofile_limit(files) {
        Ok(limit) if limit >= files => {}
        refused => {
            let reason = format!("{files} open files are needed: {refused:?}");
            return skipped::say("abuse::connections", &reason);
        }
    }
    let bystander = Bystander::start(&[
        &format!("server.connections_max={connections}"),
        "server.idle_timeout=300s",
    ]);
    let share = connections / 4;
    let attack = bystander.withstand("idle connections", BUDGET_BYTES, |site| {
        let open: Vec<_> = (0..connections)
            .map(|_| TcpStream::connect(site.http()).unwrap())
            .collect();
        let held = eventually(Duration::from_secs(60), || {
            let held = open.iter().filter(|stream| !is_turned_away(stream)).count();
            match held <= share {
                true => Ok(held),
                false => Err(format!("{held} connections of one address are open")),
            }
        });
        assert_eq!(held, share, "an address gets its share");
        thread::sleep(length(Duration::from_secs(1), Duration::from_secs(20)));
        open
    });
    let site = bystander.site();
    let refused = site
        .metrics()
        .matching(|name| name.contains("address_limit"))
        .iter()
        .map(|(_, count)| *count)
        .sum::<f64>();
    assert_eq!(
        refused as usize,
        connections - share,
        "refusals are counted"
    );
    drop(attack);
    // Their room comes back.
    eventually(Duration::from_secs(60), || {
        let mut connection = Connection::open(site.http()).map_err(|error| error.to_string())?;
        match connection.send(&Request::get("/health/live")) {
            Ok(answer) if answer.status == 200 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}
