//! `curt keys status`: what an operator sees of the line, and what it warns of.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use curt_testkit::need;
use curt_testkit::process::Guarded;

use super::line::SMALL;
use super::plant::{FRONT, Plant, Shape, list, stop};
use crate::api::Api;
use crate::site::Site;
use crate::wait::eventually;

const SHARDS: Shape = Shape {
    ledgers: 1,
    pools: 2,
};

/// Leaves more dead rows than a take should have to step over.
const DIE: &str = "alter table keys set (autovacuum_enabled = off); \
    insert into keys (key) select 'dead-' || n from generate_series(1, 110000) n; \
    delete from keys where key like 'dead-%'";

/// Waits until the status warns of something.
fn wait_for_alarm(plant: &Plant, alarm: &str) {
    eventually(Duration::from_secs(30), || {
        let status = plant.status().0;
        let alarms = status["alarms"].as_array().unwrap();
        let mut texts = alarms.iter().filter_map(|text| text.as_str());
        match texts.any(|text| text.contains(alarm)) {
            true => Ok(()),
            false => Err(format!("no {alarm:?} in {status:#}")),
        }
    });
    let table = plant.run(&["keys", "status"]);
    let warned = |line: &str| line.starts_with("! ") && line.contains(alarm);
    assert!(table.lines().any(warned), "{table}");
}

#[test]
fn the_status_tells_of_every_shard_and_warns_of_drought_dead_rows_leaks_conflicts_and_silence() {
    let mut plant = need!(Plant::start(SHARDS, SMALL));
    let [keygen, keysync, front] =
        [&["keygen"], &["keysync"], FRONT].map(|roles| plant.process(roles));
    eventually(Duration::from_secs(60), || {
        let status = plant.status();
        let is_calm = status.0["alarms"].as_array().is_some_and(Vec::is_empty);
        match is_calm && status.keys("buffered")? > 0 {
            true => Ok(()),
            false => Err(format!("{:#}", status.0)),
        }
    });
    let status = plant.status().0;
    assert_eq!(status["processes"].as_array().map(Vec::len), Some(3));
    let keysync_pid = format!("/{} keysync", keysync.pid());
    for pool in status["pools"].as_array().unwrap() {
        let owner = pool["owner"].as_str().unwrap_or_default();
        assert!(owner.ends_with(&keysync_pid), "{pool}");
    }
    let table = plant.run(&["keys", "status"]);
    for part in ["keys-db-0", "keys-pool-1", "minted", &keysync_pid, "leaked"] {
        assert!(table.contains(part), "{part} in\n{table}");
    }
    assert!(!table.contains("postgres@"), "no account:\n{table}");
    let (reached, said) = plant.said(&["check", "--reach"]);
    assert!(reached, "{said}");
    let answer = |said: &str| said.matches(" answers\n").count();
    assert_eq!(answer(&said), 5, "two databases, two pools, leases: {said}");

    // A vacuum that never comes.
    plant.ledgers[0].sql(DIE).unwrap();
    wait_for_alarm(&plant, "dead rows");

    // Nobody refills any more, and what was there is thrown away.
    stop(keygen);
    stop(keysync);
    plant.trim(1, 1);
    wait_for_alarm(&plant, "keys-pool-1 runs dry: 1 keys");
    wait_for_alarm(&plant, "keys leaked");
    // A pool with old data.
    let mut api = Api::new(front.http().unwrap(), plant.token());
    let made = api.create("https://example.com/first").unwrap().json();
    let used = made["key"].as_str().unwrap().to_owned();
    plant.pools[0]
        .run_command(&["LPUSH", &list(0), &used])
        .unwrap();
    for number in 0..900 {
        let target = format!("https://example.com/{number}");
        assert_eq!(api.create(&target).unwrap().status, 201);
    }
    wait_for_alarm(&plant, "met 1 keys that were on links already");
    plant.pools[1].kill().unwrap();
    wait_for_alarm(&plant, "redis");
    let (reached, said) = plant.said(&["check", "--reach"]);
    assert!(!reached && answer(&said) == 4, "{said}");
    let status = plant.status().0;
    assert!(status["pools"][1]["keys"].is_null() && status["keys"].is_null());
    assert!(plant.run(&["keys", "status"]).contains("not knowable"));
    stop(front);
}

#[test]
fn the_status_can_be_watched() {
    let site = Site::prepared(&[]);
    let mut command = site.app().command();
    command
        .args(["keys", "status", "--watch", "--every", "1"])
        .stdout(Stdio::piped());
    let mut watching = Guarded::spawn(&mut command).unwrap();
    let lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let times = lines
        .map_while(Result::ok)
        .filter(|line| line.contains("keys-db-0"))
        .take(3)
        .count();
    watching.kill().unwrap();
    assert_eq!(times, 3);
}
