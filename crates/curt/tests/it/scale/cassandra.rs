//! Links in Cassandra, over the real binary.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use curt_testkit::engines::cassandra::{self, Cluster};
use curt_testkit::engines::unique;
use curt_testkit::need;
use serde_json::json;

use super::life::{check_life_of_links, texts};
use crate::durability::judge_kills;
use crate::length::{length, time_max};
use crate::site::Site;
use crate::wait::eventually;

const BACK_WITHIN: Duration = Duration::from_secs(60);
/// How long Cassandra keeps writes from its log, in the tests' settings.
const LOGGED_WITHIN: Duration = Duration::from_secs(3);
/// What a request may take that is refused.
const REFUSED_WITHIN: Duration = Duration::from_secs(2);

/// Settings of an installation of its own on the cluster, with the longest time of a call.
pub(crate) fn settings(cluster: &Cluster, call_timeout: &str) -> Vec<String> {
    let addresses = cluster.addresses();
    let namespace = unique("server");
    vec![
        format!("store.links=cassandra://{addresses}/curt?namespace={namespace}"),
        // The machine may be busy.
        format!("cassandra.connect_timeout={}", length("20s", "2s")),
        format!("cassandra.background_timeout={}", length("20s", "6s")),
        format!("cassandra.call_timeout={}", length(call_timeout, "1500ms")),
    ]
}

#[test]
fn links_on_cassandra_live_like_any_others() {
    let cluster = need!(cassandra::shared());
    let settings = settings(&cluster, "20s");
    check_life_of_links(&settings, "cassandra", "/curt: up to date");
}

#[test]
fn acknowledged_writes_to_cassandra_survive_kill_9_l1() {
    let cluster = need!(cassandra::shared());
    let site = Site::start_with_stores(&texts(&settings(&cluster, "20s")));
    judge_kills(site, length(2, 20), length(1_000..2_000, 1_500..4_000));
}

#[test]
fn without_cassandra_requests_are_refused_in_time_and_served_again_after_it() {
    check_outage(need!(Cluster::start(1))).unwrap();
}

fn check_outage(mut cluster: Cluster) -> Result<()> {
    let site = Site::start_with_stores(&texts(&settings(&cluster, "5s")));
    let mut api = site.api();
    let created = eventually(BACK_WITHIN, || {
        let answer = api.create("https://example.com/kept").unwrap();
        match answer.status {
            201 => Ok(answer.json()["key"].as_str().unwrap().to_owned()),
            _ => {
                thread::sleep(Duration::from_secs(1));
                Err(answer.text())
            }
        }
    });
    let spare = "https://example.com/spare";
    let spare = json!({ "target": spare, "alias": "spare" });
    eventually(BACK_WITHIN, || {
        let answer = api.post("/api/v1/links", &spare).unwrap();
        let is_there = [201, 409].contains(&answer.status);
        is_there.then_some(()).ok_or_else(|| answer.text())
    });
    assert_eq!(api.follow(&created)?.status, 302);
    // A single copy survives the death of its node once the log has it, which Cassandra sees to now and then.
    thread::sleep(LOGGED_WITHIN);
    cluster.node_mut(0)?.kill()?;
    let refused = |status: u16, after: Option<&str>, took: Duration| {
        assert_eq!(status, 503);
        assert!(after.is_some(), "without Retry-After");
        assert!(took < time_max(REFUSED_WITHIN), "refused after {took:?}");
    };
    for _ in 0..3 {
        let began = Instant::now();
        let answer = api.create("https://example.com/refused")?;
        refused(answer.status, answer.header("retry-after"), began.elapsed());
        let began = Instant::now();
        let answer = api.follow("spare")?;
        refused(answer.status, answer.header("retry-after"), began.elapsed());
    }
    cluster.node_mut(0)?.restart()?;
    for key in [&*created, "spare"] {
        eventually(BACK_WITHIN, || match api.follow(key).unwrap().status {
            302 => Ok(()),
            status => Err(status),
        });
    }
    Ok(())
}
