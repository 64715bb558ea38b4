//! A pool that comes back from an old snapshot: its keys are in two places, and the status tells them from leaked ones.

use std::collections::HashSet;
use std::time::Duration;

use curt_testkit::http::Client;
use curt_testkit::need;
use curt_testkit::process::Server;
use serde_json::Value;

use super::faults::{ONE, lines, pooled};
use super::line::{SMALL, buffered, metrics};
use super::plant::{FRONT, Plant, list, stop};
use crate::api::{Api, bulk_results};
use crate::length::length;
use crate::wait::eventually;

/// Keys that one round takes from the pool at least: the buffer holds 800, and is refilled below 400.
const LINKS_PER_ROUND: usize = 500;
const LEAKED: u64 = 50;
const SEEN_WITHIN: Duration = Duration::from_secs(60);

/// Waits until the pool is full and the server's buffer is filled from it, and lets nobody refill the pool after that.
fn start(plant: &Plant) -> Server {
    let line = [plant.process(&["keygen"]), plant.process(&["keysync"])];
    let front = plant.process(FRONT);
    eventually(SEEN_WITHIN, || {
        let (depth, held) = (plant.depth(0), buffered(&front));
        match depth >= 2_000 && held >= 400 {
            true => Ok(()),
            false => Err(format!("{depth} keys pooled, {held} buffered")),
        }
    });
    line.into_iter().for_each(stop);
    wait_until_still(plant, &front);
    front
}

/// Waits until no key moves between pool and buffer.
fn wait_until_still(plant: &Plant, front: &Server) {
    let mut last = None;
    eventually(SEEN_WITHIN, || {
        let now = (plant.depth(0), buffered(front));
        match now.1 >= 400 && last.replace(now) == Some(now) {
            true => Ok(()),
            // Longer than the server takes to tell.
            false => {
                std::thread::sleep(Duration::from_millis(500));
                Err(format!("keys move: {now:?}"))
            }
        }
    });
}

fn create(api: &mut Api, links: usize) {
    let targets: Vec<String> = (0..links)
        .map(|number| format!("https://example.com/{number}"))
        .collect();
    for some in targets.chunks(250) {
        bulk_results(&api.bulk(some).unwrap());
    }
}

/// Saves the pool, uses some of its keys, kills it and starts it again on what it saved. Returns how many keys are in it
/// again that had been taken.
fn come_back(plant: &mut Plant, front: &Server) -> u64 {
    plant.pools[0].run_command(&["SAVE"]).unwrap();
    let saved = pooled(&plant.pools[0]);
    create(
        &mut Api::new(front.http().unwrap(), plant.token()),
        LINKS_PER_ROUND,
    );
    wait_until_still(plant, front);
    let left = pooled(&plant.pools[0]);
    plant.pools[0].kill().unwrap();
    plant.pools[0].restart().unwrap();
    assert_eq!(pooled(&plant.pools[0]), saved);
    saved.difference(&left).count() as u64
}

fn audited(plant: &Plant) -> Value {
    let printed = plant.run(&["keys", "status", "--audit", "--json"]);
    let status: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(status["audit"]["exact"], true, "{status:#}");
    assert_eq!(status["balances"], true, "{status:#}");
    status
}

/// Everything that an operator may look at says so.
fn alarms(plant: &Plant, front: &Server, keys: u64) {
    let status = plant.status();
    assert_eq!(status.0["balances"], false, "{}", status.0);
    assert_eq!(status.keys("duplicated"), Ok(keys));
    let table = plant.run(&["keys", "status"]);
    let alarm = format!("! {keys} keys more are found than were made");
    assert!(table.contains(&alarm), "{table}");
    eventually(SEEN_WITHIN, || {
        let shown = metrics(front).get("curt_keys_unbalanced");
        let health = Client::new(front.admin().unwrap()).get("/health/ready");
        let health = health.unwrap();
        assert_eq!(health.status, 200, "links are served: {}", health.text());
        let is_told = health.text().contains("more are found than were made");
        match shown == Some(keys as f64) && is_told {
            true => Ok(()),
            false => Err(format!("metric {shown:?}, health {}", health.text())),
        }
    });
    assert!(front.logs().contains("keys_unbalanced"), "{}", front.logs());
}

#[test]
fn keys_that_came_back_are_counted_and_told_from_leaked_ones_k2() {
    let mut plant = need!(Plant::start(ONE, SMALL));
    let front = start(&plant);
    assert_eq!(plant.status().0["balances"], true);
    let rounds = length(3, 10);
    let came_back: u64 = (0..rounds).map(|_| come_back(&mut plant, &front)).sum();
    wait_until_still(&plant, &front);
    // A key that came back is in two places until it meets its link.
    let conflicts = || metrics(&front).get("curt_key_conflicts_total").unwrap() as u64;
    let doubled = came_back - conflicts();
    assert!(doubled > LEAKED, "{doubled} of {came_back} keys are left");
    alarms(&plant, &front, doubled);

    let used: HashSet<String> = lines(&plant.links.sql("select key from links").unwrap());
    let on_links = used.intersection(&pooled(&plant.pools[0])).count() as u64;
    let status = audited(&plant);
    assert_eq!(status["keys"]["duplicated"], doubled, "{status:#}");
    assert_eq!(status["keys"]["leaked"], 0, "{status:#}");
    // Some of those in the pool are on links, the others in the buffer; and some in the buffer are on links.
    let told = status["audit"]["on_links"].as_u64().unwrap();
    assert!(on_links > 0 && told >= on_links, "{on_links}: {status:#}");

    // As many keys of the other end are lost: the counts alone would show the difference.
    let last = format!("-{}", LEAKED + 1);
    plant.pools[0]
        .run_command(&["LTRIM", &list(0), "0", &last])
        .unwrap();
    assert_eq!(plant.status().keys("duplicated"), Ok(doubled - LEAKED));
    let status = audited(&plant);
    assert_eq!(status["keys"]["duplicated"], doubled, "{status:#}");
    assert_eq!(status["keys"]["leaked"], LEAKED, "{status:#}");

    // Used up, each has met its link, and what leaked is still known.
    let mut api = Api::new(front.http().unwrap(), plant.token());
    eventually(SEEN_WITHIN, || {
        create(&mut api, 50);
        match conflicts() {
            all if all >= came_back => Ok(()),
            some => Err(format!("{some} conflicts of {came_back}")),
        }
    });
    wait_until_still(&plant, &front);
    let status = audited(&plant);
    assert_eq!(conflicts(), came_back);
    assert_eq!(status["keys"]["duplicated"], 0, "{status:#}");
    assert_eq!(status["keys"]["leaked"], LEAKED, "{status:#}");
    eventually(SEEN_WITHIN, || {
        match metrics(&front).get("curt_keys_unbalanced") {
            Some(0.0) => Ok(()),
            still => Err(format!("{still:?} keys are said to be in two places")),
        }
    });
    println!(
        "scale: {rounds} times an old pool: {came_back} keys came back, {doubled} were in two places at rest, \
         {came_back} conflicts in the end, {LEAKED} leaked"
    );
    stop(front);
}
