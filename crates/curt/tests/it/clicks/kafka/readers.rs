//! Who reads the stream besides those that count: reports and feeds of servers that count nothing, and strangers.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::time::Duration;

use curt_testkit::engines::kafka;
use curt_testkit::engines::postgres::{self, Database};
use curt_testkit::http::{Connection, Request};
use curt_testkit::need;
use serde_json::json;

use super::super::{WAIT_MAX, new_link};
use super::{Plant, click_for, wait_for};
use crate::site::Site;
use crate::wait::eventually;

/// Windows last half an hour here, so that nothing is written but for those who ask.
#[test]
fn reports_at_a_server_that_counts_nothing_are_a_moment_old_and_strangers_read_json() {
    let cluster = need!(kafka::shared());
    let postgres = need!(postgres::shared());
    let kcat = need!(kafka::kcat());
    let database = postgres.database("kafka_fresh").unwrap();
    let plant = Plant::new(&cluster, database, &[]);
    let server = plant.server();
    let key = new_link(&server, &json!({ "tags": ["spring"] }));
    let _counters = [plant.counter(), plant.counter()];
    let keys = [key];
    // At another server than the one that is clicked on.
    let onlooker = plant.server();
    let feed = open_feed(&onlooker);
    let diary = click_for(&server, &keys, 0, Duration::from_millis(200));
    let answered = diary.answered.len() as u64;
    wait_for_events(feed, answered);
    wait_for(&server, &keys, answered);
    let path = format!("/api/v1/links/{}/stats", keys[0]);
    eventually(WAIT_MAX, || {
        let stats = server.api().get(&path).unwrap().json();
        let lag = stats["lag_max_seconds"].as_u64().unwrap();
        match lag <= 2 {
            true => Ok(()),
            false => Err(format!("reports may be {lag} s old")),
        }
    });
    send_nonsense(&kcat, &plant);
    check_records(&kcat_lines(&kcat, &plant, ""), &keys[0], answered);
    let warehouse = postgres.database("warehouse").unwrap();
    for _ in 0..2 {
        load_as_documented(&plant, &warehouse);
        let loaded = warehouse.sql("select count(*) from clicks").unwrap();
        assert_eq!(loaded.trim(), answered.to_string());
    }
    // Seen by whoever looks on with curt, too: at least one of four is no nonsense.
    let mut arguments = vec!["events", "tail", "--json", "--since", "1h", "--limit", "4"];
    let settings = server.set_arguments();
    arguments.extend(settings.iter().map(String::as_str));
    let tail = server.output(&arguments);
    let said = String::from_utf8_lossy(&tail.stdout);
    assert!(
        said.contains("shortCode"),
        "{said} {}",
        String::from_utf8_lossy(&tail.stderr)
    );
    // The consumers have put it aside, and count on.
    let more = click_for(&server, &keys, 1, Duration::from_millis(100));
    wait_for(&server, &keys, answered + more.answered.len() as u64);
    let letters = kcat_lines(&kcat, &plant, ".dead-letters");
    // One that is read again by another counter comes twice.
    for number in 1..=3 {
        let letter = format!("{{\"no click\":{number}}}");
        assert!(letters.contains(&letter), "{letters}");
    }
    assert!(letters.contains("reason=json"), "{letters}");
}

/// What strangers read is as it is documented: so many clicks of the link.
fn check_records(lines: &str, key: &str, answered: u64) {
    let (mut clicks, mut ids) = (0, std::collections::HashSet::new());
    for line in lines.lines().filter(|line| line.contains("shortCode")) {
        let click: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&click["v"], &click["ip"]),
            (&json!(1), &json!("127.0.0.0")),
            "{click}"
        );
        assert_eq!(click["shortCode"], key, "{click}");
        assert_eq!(
            (&click["outcome"], &click["tags"]),
            (&json!("redirected"), &json!(["spring"]))
        );
        let at = click["timestamp"].as_str().unwrap();
        assert!(at.parse::<jiff::Timestamp>().is_ok(), "{at}");
        clicks += u64::from(ids.insert(click["id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(clicks, answered);
}

/// Opens the live feed of all links.
fn open_feed(site: &Site) -> Connection {
    let mut feed = Connection::open(site.http()).unwrap();
    let request = Request::get("/api/v1/live").bearer(site.token());
    feed.write_raw(&request.encode("feed.example")).unwrap();
    let mut first = [0; "HTTP/1.1 200".len()];
    feed.stream().set_read_timeout(Some(WAIT_MAX)).unwrap();
    feed.stream().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    feed
}

/// Reads until the feed has told of so many clicks.
fn wait_for_events(feed: Connection, clicks: u64) {
    let mut told = 0;
    for line in BufReader::new(feed.stream()).lines() {
        let line = line.unwrap();
        if let Some(data) = line.strip_prefix("data: ") {
            let data: serde_json::Value = serde_json::from_str(data).unwrap();
            told += data["counts"]["total"].as_u64().unwrap_or(0);
        }
        if told >= clicks {
            return;
        }
    }
    panic!("the feed ended with {told} of {clicks} clicks");
}

/// Runs the example of the documentation as it stands there.
fn load_as_documented(plant: &Plant, warehouse: &Database) {
    let page = include_str!("../../../../../../docs/click-stream.md");
    let (_, section) = page.split_once("## Into PostgreSQL").unwrap();
    let blocks: Vec<&str> = section.split("```").collect();
    let tables = blocks[1].strip_prefix("sql\n").unwrap();
    if warehouse.sql("select 1 from clicks").is_err() {
        warehouse.sql(tables).unwrap();
    }
    let psql = format!("psql -v ON_ERROR_STOP=1 '{}'", warehouse.url());
    let commands = blocks[3]
        .replace("-b h1", &format!("-b {}", plant.hosts()))
        .replace("url-access-events", &plant.topic())
        .replace("psql", &psql);
    let mut shell = std::process::Command::new("bash");
    shell.args(["-e", "-o", "pipefail", "-c", &commands]);
    let ran = shell.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{commands}\n{said}");
}

fn send_nonsense(kcat: &Path, plant: &Plant) {
    let mut sender = std::process::Command::new(kcat)
        .args(["-P", "-b", &plant.hosts(), "-t", &plant.topic()])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = b"{\"no click\":1}\n{\"no click\":2}\n{\"no click\":3}\n";
    std::io::Write::write_all(&mut sender.stdin.take().unwrap(), lines).unwrap();
    assert!(sender.wait().unwrap().success());
}

/// Everything in the topic, with headers in front.
fn kcat_lines(kcat: &Path, plant: &Plant, suffix: &str) -> String {
    let topic = format!("{}{suffix}", plant.topic());
    let read = std::process::Command::new(kcat)
        .args([
            "-C",
            "-b",
            &plant.hosts(),
            "-t",
            &topic,
            "-o",
            "beginning",
            "-e",
            "-q",
        ])
        .args([
            "-f",
            if suffix.is_empty() {
                "%s\\n"
            } else {
                "%h %s\\n"
            },
        ])
        .output()
        .unwrap();
    assert!(
        read.status.success(),
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );
    String::from_utf8(read.stdout).unwrap()
}
