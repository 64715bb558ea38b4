//! Creates that the links database refuses: nothing is used up by them, and the log is not filled.

use std::time::Duration;

use curt_testkit::need;
use serde_json::json;

use super::faults::{ONE, Running};
use super::line::{SMALL, metrics, reconciles};
use super::plant::Plant;
use crate::api::Api;
use crate::length::length;
use crate::wait::eventually;

/// Lets the engine refuse every new link, as it does when its disk is full or it may not be written.
fn refuse(code: &str) -> String {
    format!(
        "create or replace function refuse() returns trigger language plpgsql as \
         $$ begin raise exception 'refused for a test' using errcode = '{code}'; end $$; \
         create or replace trigger refuse before insert on links for each statement execute function refuse()"
    )
}

#[test]
fn creates_that_are_clearly_refused_cost_no_key_and_few_log_lines_k2() {
    let plant = need!(Plant::start(ONE, SMALL));
    let running = Running::start(&plant);
    let mut api = Api::new(running.front.http().unwrap(), plant.token());
    assert_eq!(api.create("https://example.com/").unwrap().status, 201);
    assert_eq!(reconciles(&plant, 0).keys("leaked"), Ok(0));
    let tries = length(150, 3_000);
    let targets: Vec<String> = (0..20)
        .map(|n| format!("https://example.com/{n}"))
        .collect();
    // Disk full, read-only, given up after the time for a statement.
    for code in ["53100", "25006", "57014"] {
        plant.links.sql(&refuse(code)).unwrap();
        for number in 0..tries {
            let answer = match number % 3 {
                0 => api.create("https://example.com/"),
                1 => api.create_once("https://example.com/", &format!("{code}-{number}")),
                _ => api.bulk(&targets),
            };
            let answer = answer.unwrap();
            assert_eq!(answer.status, 503, "{code}: {answer:?}");
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
        }
        plant.links.sql("drop trigger refuse on links").unwrap();
        eventually(Duration::from_secs(30), || {
            match api.create("https://example.com/").unwrap() {
                made if made.status == 201 => Ok(()),
                refused => Err(refused.text()),
            }
        });
    }
    assert_eq!(
        running.conflicts(),
        0.0,
        "no key was given back that is used"
    );
    let rest = reconciles(&plant, 0);
    assert_eq!(rest.keys("leaked"), Ok(0), "{}", rest.0);
    let shown = metrics(&running.front);
    let failures = shown.matching(|name| name.starts_with("curt_store_errors_total"));
    let failures: f64 = failures.iter().map(|(_, count)| count).sum();
    let logs = running.front.logs();
    let lines = logs.matches("request failed in a store").count();
    println!("scale: {failures} refused writes, {lines} lines in the log, 0 keys leaked");
    assert!(failures >= 3.0 * f64::from(tries), "{failures}");
    assert!(lines > 0 && lines < 60, "{lines} lines: {logs}");
    let body = json!({ "target": "https://example.com/" });
    assert_eq!(api.post("/api/v1/links", &body).unwrap().status, 201);
    running.stop();
}
