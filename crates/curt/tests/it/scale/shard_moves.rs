//! A shard moves between the databases of two servers, by commands that are killed on their way.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use curt_core::{DomainId, Key, LinkId, ShardId};
use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::need;
use curt_testkit::process::{App, Server};
use serde_json::{Value, json};

use super::plant::stop;
use crate::alone::Company;
use crate::api::Api;
use crate::length::length;

/// The shard that moves.
const SHARD: u16 = 0x21f;
const WAIT_MAX: Duration = Duration::from_secs(60);

struct Installation {
    servers: Vec<Server>,
    apps: [App; 2],
    urls: String,
    token: String,
    _databases: [Database; 2],
    _company: Company,
}

impl Installation {
    fn start() -> Result<Self> {
        let company = Company::join();
        let server = shared()?;
        let databases = [server.database("node")?, server.database("node")?];
        let urls = databases.each_ref().map(Database::url).join(",");
        let app = || -> Result<App> {
            Ok(App::new(env!("CARGO_BIN_EXE_curt"))?
                .ready_within(WAIT_MAX * 2)
                .setting("store.links", &urls)
                .setting("server.drain_delay", "0s")
                .setting("limits.misses_per_address", "")
                .setting("server.workers", 1)
                .setting("log.level", "error"))
        };
        let apps = [app()?, app()?];
        apps[0].run(&["user", "add", "tests@example.com"])?;
        let token = apps[0].run(&["api-key", "add", "tests", "--user", "tests@example.com"])?;
        Ok(Self {
            servers: vec![apps[0].start()?, apps[1].start()?],
            apps,
            urls,
            token: token.trim().to_owned(),
            _databases: databases,
            _company: company,
        })
    }

    fn owner(&self) -> u64 {
        let shown = self.apps[0].run(&["shards", "show", "--json"]).unwrap();
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["nodes"].as_array().unwrap().len(), 2, "{shown}");
        // By modulo the first map gives node 1 the odd ones.
        let shards = shown["nodes"][1]["shards"].as_u64().unwrap();
        u64::from(shards == 512)
    }

    /// Moves the shard; with a time, by a command that is killed then, and another that goes on.
    fn move_shard(&self, killed_after: Option<Duration>) -> Value {
        let to = (1 - self.owner()).to_string();
        let shard = SHARD.to_string();
        let Some(time) = killed_after else {
            let moved = self.apps[0].run(&["shards", "move", &shard, "--to", &to, "--json"]);
            return serde_json::from_str(&moved.unwrap()).unwrap();
        };
        let mut command = self.apps[0].command();
        let links = format!("store.links={}", self.urls);
        command.args([
            "shards", "move", &shard, "--to", &to, "--rate", "100", "--set", &links,
        ]);
        let mut mover = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(time);
        mover.kill().unwrap();
        mover.wait().unwrap();
        let resumed = self.apps[1].run(&["shards", "resume", "--force", "--json"]);
        serde_json::from_str(&resumed.unwrap()).unwrap()
    }
}

fn keys(prefix: &str) -> impl Iterator<Item = String> {
    let is_own = |key: &String| {
        let id = LinkId::new(DomainId::DEFAULT, Key::parse(key).unwrap());
        ShardId::of(&id).number() == SHARD
    };
    let prefix = prefix.to_owned();
    (0..).map(move |n| format!("{prefix}{n}")).filter(is_own)
}

#[derive(Default)]
struct History {
    /// Which target each alias got, by those who were told so.
    winners: HashMap<String, String>,
    failures: Vec<String>,
    followed: usize,
    slowest: Duration,
}

/// Races for aliases of the shard and follows them.
fn run_client(
    address: SocketAddr,
    token: &str,
    number: usize,
    aliases: &[String],
    ended: &AtomicBool,
    history: &Mutex<History>,
) {
    let mut api = Api::new(address, token);
    for alias in aliases {
        if ended.load(Ordering::SeqCst) {
            return;
        }
        let target = format!("https://example.com/{number}");
        let begun = Instant::now();
        let answer = api.post(
            "/api/v1/links",
            &json!({ "target": target, "alias": alias }),
        );
        let answer = answer.unwrap();
        let took = begun.elapsed();
        let mut told = history.lock().unwrap();
        told.slowest = told.slowest.max(took);
        match answer.status {
            201 => {
                if let Some(other) = told.winners.insert(alias.clone(), target) {
                    told.failures
                        .push(format!("K-1: {alias} is {other}'s, too"));
                }
            }
            409 => {}
            _ => told.failures.push(format!("create {alias}: {answer:?}")),
        }
        drop(told);
        let answer = api.follow(alias).unwrap();
        let mut told = history.lock().unwrap();
        match answer.status {
            302 => told.followed += 1,
            _ => told.failures.push(format!("follow {alias}: {answer:?}")),
        }
    }
}

#[test]
fn a_shard_moves_under_load_and_commands_that_move_it_are_killed_k1_l1() {
    let mut installation = need!(Installation::start());
    let ended = Arc::new(AtomicBool::new(false));
    let history = Arc::<Mutex<History>>::default();
    let aliases: Arc<Vec<String>> = Arc::new(keys("m").take(4_000).collect());
    // The second server dies in between, and its clients with it: they are the first one's.
    let address = installation.servers[0].http().unwrap();
    let clients: Vec<_> = (0..3)
        .map(|number| {
            let (ended, history, aliases) = (ended.clone(), history.clone(), aliases.clone());
            let token = installation.token.clone();
            thread::spawn(move || run_client(address, &token, number, &aliases, &ended, &history))
        })
        .collect();
    let mut longest = 0;
    for round in 0..length(4, 20) {
        thread::sleep(Duration::from_millis(300));
        let killed_after = (round % 2 == 1).then(|| Duration::from_millis(150 + 90 * (round % 7)));
        let moved = installation.move_shard(killed_after);
        for one in moved["moves"].as_array().unwrap() {
            longest = longest.max(one["write_pause_ms"].as_u64().unwrap());
        }
        if round == 1 {
            let second = installation.servers.pop().unwrap();
            second.kill().unwrap();
            installation
                .servers
                .push(installation.apps[1].start().unwrap());
        }
    }
    ended.store(true, Ordering::SeqCst);
    for client in clients {
        client.join().unwrap();
    }
    let told = history.lock().unwrap();
    println!(
        "{} aliases, {} followed, switch at most {longest} ms, slowest create {:?}",
        told.winners.len(),
        told.followed,
        told.slowest
    );
    assert!(told.failures.is_empty(), "{:#?}", told.failures);
    assert!(
        told.winners.len() > 50,
        "too little load: {}",
        told.winners.len()
    );
    assert!(longest <= 1_000, "B17: writes waited for {longest} ms");
    let mut other = Api::new(installation.servers[1].http().unwrap(), &installation.token);
    for (alias, target) in &told.winners {
        let answer = other.follow(alias).unwrap();
        assert_eq!(
            answer.header("location"),
            Some(target.as_str()),
            "{alias}: {answer:?}"
        );
    }
    for server in installation.servers {
        stop(server);
    }
}
