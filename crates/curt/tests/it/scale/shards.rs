//! Two servers over four links databases.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Result;
use curt_core::{DomainId, Key, LinkId, ShardId};
use curt_testkit::engines::postgres::{Database, Server as Postgres, shared};
use curt_testkit::http::Client;
use curt_testkit::need;
use curt_testkit::process::{App, Server};
use serde_json::{Value, json};

use super::plant::stop;
use crate::alone::Company;
use crate::api::{Answer, Api, bulk_results};
use crate::length::time_max;
use crate::wait::eventually;

/// The node on a server of its own.
const DOOMED: usize = 3;
/// What a call about a link of a dead node may take.
const REFUSED_WITHIN: Duration = Duration::from_secs(2);
const WAIT_MAX: Duration = Duration::from_secs(60);

struct Installation {
    servers: [Server; 2],
    apps: [App; 2],
    doomed: Postgres,
    urls: Vec<String>,
    token: String,
    _databases: [Database; 3],
    _company: Company,
}

impl Installation {
    fn start() -> Result<Self> {
        let company = Company::join();
        let server = shared()?;
        let databases = [(); 3].map(|()| server.database("node"));
        let [first, second, third] = databases;
        let databases = [first?, second?, third?];
        let doomed = Postgres::start()?;
        doomed.sql("create database node")?;
        let mut urls: Vec<String> = databases.iter().map(Database::url).collect();
        urls.push(doomed.url("node"));
        let apps = [app(&urls)?, app(&urls)?];
        apps[0].run(&["user", "add", "tests@example.com"])?;
        let token = apps[0].run(&["api-key", "add", "tests", "--user", "tests@example.com"])?;
        Ok(Self {
            servers: [apps[0].start()?, apps[1].start()?],
            apps,
            doomed,
            urls,
            token: token.trim().to_owned(),
            _databases: databases,
            _company: company,
        })
    }

    fn api(&self, server: usize) -> Api {
        Api::new(self.servers[server].http().unwrap(), &self.token)
    }
}

fn app(urls: &[String]) -> Result<App> {
    Ok(App::new(env!("CARGO_BIN_EXE_curt"))?
        .ready_within(WAIT_MAX * 2)
        .setting("store.links", urls.join(","))
        .setting("server.drain_delay", "0s")
        .setting("limits.misses_per_address", "")
        .setting("server.workers", 1)
        .setting("log.level", "error"))
}

/// By modulo.
fn node_of(key: &str) -> usize {
    let id = LinkId::new(DomainId::DEFAULT, Key::parse(key).unwrap());
    usize::from(ShardId::of(&id).number() % 4)
}

fn key_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["key"].as_str().unwrap().to_owned()
}

/// Every key of the list, in pages.
fn walk(api: &mut Api, order: &str) -> Vec<String> {
    let (mut keys, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/links?limit=7&order={order}{cursor}");
        let answer = api.get(&path).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        let page = answer.json();
        let links = page["links"].as_array().unwrap();
        keys.extend(
            links
                .iter()
                .map(|link| link["key"].as_str().unwrap().to_owned()),
        );
        match page["next"].as_str() {
            Some(next) => {
                let next: String = next.bytes().map(|byte| format!("%{byte:02X}")).collect();
                cursor = format!("&cursor={next}");
            }
            None => return keys,
        }
    }
}

#[test]
fn two_servers_share_links_over_four_databases_and_one_dies() {
    let mut installation = need!(Installation::start());
    let (mut one, mut other) = (installation.api(0), installation.api(1));
    let targets: Vec<String> = (0..40)
        .map(|n| format!("https://example.com/{n}"))
        .collect();
    let keys = bulk_results(&one.bulk(&targets).unwrap());
    let nodes: HashSet<usize> = keys.iter().map(|key| node_of(key)).collect();
    assert_eq!(nodes.len(), 4, "40 links are on {nodes:?}");
    for (key, target) in keys.iter().zip(&targets) {
        let answer = other.follow(key).unwrap();
        assert_eq!(
            answer.header("location"),
            Some(target.as_str()),
            "{answer:?}"
        );
    }

    // The same request at the other server, and both at once.
    let once =
        |api: &mut Api| key_of(&api.create_once("https://example.com/once", "once").unwrap());
    let first = once(&mut one);
    assert_eq!(once(&mut other), first);
    let alias = json!({ "target": "https://example.com/a", "alias": "the-alias" });
    assert_eq!(one.post("/api/v1/links", &alias).unwrap().status, 201);
    assert_eq!(other.post("/api/v1/links", &alias).unwrap().status, 409);

    let mut all = keys.clone();
    all.extend([first, "the-alias".to_owned()]);
    let mut listed = walk(&mut other, "key");
    all.sort();
    assert_eq!(listed, all);
    listed = walk(&mut one, "newest");
    listed.sort();
    assert_eq!(listed, all);

    installation.doomed.kill().unwrap();
    // Before anything has told the servers of it.
    assert_created_elsewhere(&mut one);
    let partly = assert_outcomes_of_their_own(&mut other);
    assert_one_dead_node(&installation, &keys);
    installation.doomed.restart().unwrap();
    eventually(WAIT_MAX, || {
        let lost = keys.iter().find(|key| node_of(key) == DOOMED).unwrap();
        let answer = installation.api(0).follow(lost).unwrap();
        match answer.status {
            302 => Ok(()),
            _ => Err(format!("{answer:?}")),
        }
    });
    partly.assert_resumed(&mut installation.api(0));
    let [one, other] = installation.servers;
    stop(one);
    stop(other);
    assert_refused_lists(&installation.apps[0], &installation.urls);
}

/// Links of the dead node are refused in time, and nothing else is.
fn assert_one_dead_node(installation: &Installation, keys: &[String]) {
    // Copies end.
    std::thread::sleep(Duration::from_millis(1_100));
    for server in [0, 1] {
        let mut api = installation.api(server);
        for key in keys {
            let begun = Instant::now();
            let answer = api.follow(key).unwrap();
            if node_of(key) == DOOMED {
                assert_eq!(answer.status, 503, "{answer:?}");
                assert!(answer.header("retry-after").is_some(), "{answer:?}");
                let took = begun.elapsed();
                assert!(took <= time_max(REFUSED_WITHIN), "{took:?}");
            } else {
                assert_eq!(answer.status, 302, "{answer:?}");
            }
        }
        let list = api.get("/api/v1/links?limit=7").unwrap();
        assert_eq!(list.status, 503, "a list without a node: {list:?}");
        let alive = (0..).map(|n| format!("alive-{server}-{n}"));
        let alive = alive.filter(|alias| node_of(alias) != DOOMED).take(6);
        for alias in alive {
            let link = json!({ "target": "https://example.com/", "alias": alias });
            let answer = api.post("/api/v1/links", &link).unwrap();
            assert_eq!(answer.status, 201, "{answer:?}");
        }
        let mut client = Client::new(installation.servers[server].http().unwrap());
        let ready = client.get("/health/ready").unwrap();
        assert_eq!(ready.status, 200, "{}", ready.text());
        eventually(WAIT_MAX, || {
            let mut admin = Client::new(installation.servers[server].admin().unwrap());
            let metrics = admin.get("/metrics").unwrap().text();
            let is_told = metrics.contains("curt_links_node_up{node=\"3\"} 0")
                && metrics.contains("curt_links_node_up{node=\"0\"} 1");
            is_told.then_some(()).ok_or(metrics)
        });
        assert_created_elsewhere(&mut api);
    }
}

/// New links with generated keys get those of the nodes that answer.
fn assert_created_elsewhere(api: &mut Api) {
    for _ in 0..12 {
        let key = key_of(&api.create("https://example.com/").unwrap());
        assert_ne!(node_of(&key), DOOMED);
    }
    let targets = vec!["https://example.com/".to_owned(); 40];
    let keys = bulk_results(&api.bulk(&targets).unwrap());
    assert!(keys.iter().all(|key| node_of(key) != DOOMED));
}

/// A bulk request with an idempotency key that was answered while a node was away.
struct PartlyMade {
    idempotency_key: String,
    links: Vec<Value>,
    /// The key of each link that was made.
    keys: Vec<Option<String>>,
}

/// With a dead node that nothing is known of yet: links with generated keys get keys of other nodes at once, and of a bulk
/// the aliases of the dead node are refused, nothing else.
fn assert_outcomes_of_their_own(api: &mut Api) -> PartlyMade {
    for n in 0..12 {
        let mut create = || {
            let name = format!("single-{n}");
            api.create_once("https://example.com/once", &name).unwrap()
        };
        let answer = create();
        if answer.status == 503 {
            // Its own record would be at the dead node, whatever the key of its link.
            assert_eq!(create().status, 503, "{answer:?}");
        } else {
            let key = key_of(&answer);
            assert_ne!(node_of(&key), DOOMED);
            assert_eq!(key_of(&create()), key);
        }
    }
    let aliases = (0..16).map(|n| Some(format!("own-outcome-{n}")));
    let generated = (0..8).map(|_| None);
    let independent = bulk_of(aliases.chain(generated));
    let answer = api.post("/api/v1/links/bulk", &independent).unwrap();
    assert_own_outcomes(&independent, &answer);

    let aliases = (0..8).map(|n| Some(format!("with-key-{n}")));
    let links = bulk_of(aliases.chain([None, None]));
    for n in 0..20 {
        let idempotency_key = format!("bulk-{n}");
        let answer = post_once(api, &links, &idempotency_key);
        if answer.status != 503 {
            let keys = assert_own_outcomes(&links, &answer);
            let again = post_once(api, &links, &idempotency_key);
            assert_eq!(assert_own_outcomes(&links, &again), keys);
            let links = links["links"].as_array().unwrap().clone();
            return PartlyMade {
                idempotency_key,
                links,
                keys,
            };
        }
    }
    panic!("20 idempotency keys all belong to the dead node");
}

impl PartlyMade {
    /// The same request again, with all nodes: what was made stays, and the rest is made.
    fn assert_resumed(&self, api: &mut Api) {
        let links = json!({ "links": self.links });
        eventually(WAIT_MAX, || {
            let answer = post_once(api, &links, &self.idempotency_key);
            let results = answer.json()["results"].clone();
            let is_whole = results
                .as_array()
                .is_some_and(|all| all.iter().all(|one| one["status"] == 201));
            is_whole.then_some(()).ok_or(format!("{answer:?}"))
        });
        let answer = post_once(api, &links, &self.idempotency_key);
        let keys = bulk_results(&answer);
        for ((link, before), key) in self.links.iter().zip(&self.keys).zip(&keys) {
            assert_eq!(before.as_ref().unwrap_or(key), key, "made twice");
            assert_eq!(link["alias"].as_str().unwrap_or(key), key);
        }
    }
}

fn bulk_of(aliases: impl Iterator<Item = Option<String>>) -> Value {
    let link = |alias: Option<String>| match alias {
        Some(alias) => json!({ "target": "https://example.com/", "alias": alias }),
        None => json!({ "target": "https://example.com/" }),
    };
    json!({ "links": aliases.map(link).collect::<Vec<_>>() })
}

fn post_once(api: &mut Api, body: &Value, idempotency_key: &str) -> Answer {
    api.post_once("/api/v1/links/bulk", body, idempotency_key)
        .unwrap()
}

/// Returns the key of each link that was made; the others are aliases of the dead node.
fn assert_own_outcomes(bulk: &Value, answer: &Answer) -> Vec<Option<String>> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let (json, links) = (answer.json(), bulk["links"].as_array().unwrap());
    let results = json["results"].as_array().unwrap();
    assert_eq!(results.len(), links.len());
    let outcome = |(result, link): (&Value, &Value)| {
        let is_dead = |key: &str| node_of(key) == DOOMED;
        match result["status"].as_u64().unwrap() {
            201 => {
                let key = result["link"]["key"].as_str().unwrap();
                assert!(!is_dead(key), "{result}");
                Some(key.to_owned())
            }
            status => {
                assert_eq!(status, 503, "{result}");
                assert!(link["alias"].as_str().is_some_and(is_dead), "{result}");
                None
            }
        }
    };
    let made: Vec<_> = results.iter().zip(links).map(outcome).collect();
    assert!(made.iter().any(Option::is_none), "{json}");
    made
}

/// Nodes in another order, or fewer of them, would find no link where it is.
fn assert_refused_lists(app: &App, urls: &[String]) {
    let swapped = [&urls[0], &urls[2], &urls[1], &urls[3]].map(String::as_str);
    for (list, said) in [
        (swapped.join(","), "curt shards show"),
        (urls[..3].join(","), "names 3 nodes"),
        (urls[0].clone(), "4 nodes"),
    ] {
        let list = format!("store.links={list}");
        let anywhere =
            ["server.listen", "server.admin_listen"].map(|key| format!("{key}=127.0.0.1:0"));
        let arguments = [
            "serve",
            "--set",
            &list,
            "--set",
            &anywhere[0],
            "--set",
            &anywhere[1],
        ];
        let output = app.output(&arguments).unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{list}: {error}");
        assert!(error.contains(said), "{list}: {error}");
    }
}
