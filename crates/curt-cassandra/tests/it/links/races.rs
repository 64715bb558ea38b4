//! An alias that many clients want at once, each with a session of its own, while answers get lost and nodes die.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use curt_cassandra::{Cassandra, CassandraSettings, Replication};
use curt_core::ports::{Inserted, LinkDatabase};
use curt_core::{Link, PortResult};
use curt_testkit::engines::cassandra::{self, Cluster};
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::engines::unique;
use curt_testkit::length::{is_full, length};
use curt_testkit::need;
use curt_testkit::sample::{alias, id, target};
use rand::RngExt as _;

use crate::world::settings;

const CLIENTS: usize = 16;
const NODES: usize = 3;
/// Between two breaks of lines.
const BREAKS_WITHIN_MILLIS: u64 = 8;
/// Longer than a write waits for its answer, and shorter than a call.
const DEAF_FOR: Duration = Duration::from_millis(600);
/// How long a cluster may need to find itself again.
const BACK_WITHIN: Duration = Duration::from_secs(120);

type Links = Arc<dyn LinkDatabase>;

/// What each client of a round was told.
struct Round {
    key: String,
    told: Vec<PortResult<Vec<Inserted>>>,
}

fn own_target(client: usize) -> String {
    format!("https://example.com/{client}")
}

/// All clients insert the same alias, each with a target of its own.
async fn race(clients: &[Links], key: String) -> Round {
    let racers = clients.iter().enumerate().map(|(client, links)| {
        let link = Link {
            target: target(&own_target(client)),
            ..alias(&key)
        };
        let links = Arc::clone(links);
        tokio::spawn(async move { links.insert_if_absent(vec![link], None).await })
    });
    let racers: Vec<_> = racers.collect();
    let mut told = Vec::new();
    for racer in racers {
        told.push(racer.await.unwrap());
    }
    Round { key, told }
}

/// Reads until it is answered.
async fn read(judge: &Links, key: &str) -> Result<Option<Link>> {
    let started = Instant::now();
    loop {
        match judge.get(&id(key)).await {
            Ok(link) => return Ok(link),
            Err(error) if started.elapsed() > BACK_WITHIN => bail!("still away: {error:?}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// K-1 and L-1: at most one client was told that it won, and whoever was has the link. Returns how many were left in doubt.
async fn judge_round(judge: &Links, round: &Round) -> Result<usize> {
    let Round { key, told } = round;
    let stored = read(judge, key).await?;
    let mut doubts = 0;
    let mut winners = Vec::new();
    for (client, told) in told.iter().enumerate() {
        match told {
            Ok(told) => match &told[..] {
                [Inserted::Created(_)] => winners.push(client),
                [Inserted::Conflict] => {}
                other => bail!("{key}: client {client} was told {other:?}"),
            },
            Err(error) => {
                ensure!(error.is_transient(), "{key}: {error:?}");
                doubts += 1;
            }
        }
    }
    ensure!(winners.len() <= 1, "K-1: {key} was won by {winners:?}");
    let owner = stored.as_ref().map(|link| link.target.as_str().to_owned());
    if let [winner] = winners[..] {
        ensure!(
            owner == Some(own_target(winner)),
            "L-1: {key} was won by {winner} and is {owner:?}"
        );
    }
    let is_conflict =
        |told: &PortResult<Vec<Inserted>>| matches!(told.as_deref(), Ok([Inserted::Conflict]));
    if told.iter().any(is_conflict) {
        let owner = owner.with_context(|| format!("{key} conflicted with nothing"))?;
        let owner = (0..CLIENTS).find(|client| own_target(*client) == owner);
        let owner = owner.context("a stranger has the link")?;
        ensure!(!is_conflict(&told[owner]), "{key}: its owner was refused");
    }
    Ok(doubts)
}

/// A timed-out write is resolved by its mark: nobody is told a conflict with their own link.
#[tokio::test(flavor = "multi_thread")]
async fn an_alias_has_one_winner_while_answers_are_lost_k1() {
    let cluster = need!(cassandra::shared());
    race_through_proxies(&cluster).await.unwrap();
}

async fn race_through_proxies(cluster: &Cluster) -> Result<()> {
    let address: SocketAddr = cluster.addresses().parse()?;
    let namespace = unique("race");
    let hasty = CassandraSettings {
        // A write gives up at half of it, so that the call can look what became of it.
        call_timeout: Duration::from_secs(1),
        ..settings()
    };
    let judge = open(&cluster.addresses(), &namespace, &settings())?;
    judge.ping().await?;
    let mut proxies = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let proxy = Proxy::to(address)?;
        clients.push(open(&proxy.address().to_string(), &namespace, &hasty)?);
        proxies.push(proxy);
    }
    for client in &clients {
        wait_until_answered(client).await?;
    }
    let (mut doubts, mut outcomes) = (0, HashMap::new());
    for number in 0..length(20, 1_000) {
        let key = format!("alias{number}");
        let (round, ()) = tokio::join!(race(&clients, key), break_lines(&proxies));
        doubts += judge_round(&judge, &round).await?;
        for told in &round.told {
            let name = match told {
                Ok(told) => format!(
                    "{:?}",
                    told.iter().map(Inserted::is_created).collect::<Vec<_>>()
                ),
                Err(error) => error.kind.as_str().to_owned(),
            };
            *outcomes.entry(name).or_insert(0) += 1;
        }
    }
    println!("{doubts} left in doubt; outcomes {outcomes:?}");
    let delayed: u64 = proxies.iter().map(Proxy::answers_delayed).sum();
    ensure!(delayed > 0, "no answer was late");
    Ok(())
}

/// Breaks some lines, each at a moment of its own between the first statement and the last, and mends them later.
async fn break_lines(proxies: &[Proxy]) {
    for proxy in proxies {
        proxy.set(any_line());
        let next = rand::rng().random_range(0..BREAKS_WITHIN_MILLIS);
        tokio::time::sleep(Duration::from_millis(next)).await;
    }
    tokio::time::sleep(DEAF_FOR).await;
    proxies.iter().for_each(|proxy| proxy.set(Line::Sound));
}

/// Mostly sound, sometimes deaf for a while or slow, and now and then cut.
fn any_line() -> Line {
    match rand::rng().random_range(0..10) {
        0..5 => Line::Sound,
        5..8 => Line::Deaf,
        8 => Line::SlowAnswers(Duration::from_millis(300)),
        _ => Line::Cut,
    }
}

/// At full length alone: three nodes take more time and memory than other tests leave.
#[tokio::test(flavor = "multi_thread")]
async fn an_alias_has_one_winner_while_nodes_die_k1() {
    if is_full() {
        let started = tokio::task::spawn_blocking(|| Cluster::start(NODES));
        race_with_kills(need!(started.await.unwrap()))
            .await
            .unwrap();
    }
}

async fn race_with_kills(mut cluster: Cluster) -> Result<()> {
    let replicated = CassandraSettings {
        replication: Replication::Everywhere(3),
        call_timeout: Duration::from_secs(5),
        connect_timeout: Duration::from_secs(10),
        ..settings()
    };
    let addresses = cluster.addresses();
    let judge = open(&addresses, "race", &replicated)?;
    wait_until_answered(&judge).await?;
    let clients: Result<Vec<Links>> = (0..CLIENTS)
        .map(|_| open(&addresses, "race", &replicated))
        .collect();
    let clients = clients?;
    for client in &clients {
        wait_until_answered(client).await?;
    }
    let rounds = 1_000;
    let mut doubts = 0;
    let mut victim = 0;
    for number in 0..rounds {
        let key = format!("alias{number}");
        let dies = number % 50 == 25;
        if dies {
            victim = (victim + 1) % NODES;
        }
        let killed = async {
            if dies {
                tokio::time::sleep(Duration::from_millis(3)).await;
                cluster.node_mut(victim)?.kill()?;
            }
            anyhow::Ok(())
        };
        let (round, killed) = tokio::join!(race(&clients, key), killed);
        killed?;
        doubts += judge_round(&judge, &round).await?;
        if number % 50 == 49 {
            println!(
                "{} of {rounds} aliases, {doubts} answers left in doubt",
                number + 1
            );
        }
        if number % 50 == 45 {
            let node = cluster.node_mut(victim)?;
            tokio::task::block_in_place(|| node.restart())?;
        }
    }
    Ok(())
}

fn open(addresses: &str, namespace: &str, settings: &CassandraSettings) -> Result<Links> {
    let address = format!("cassandra://{addresses}/curt?namespace={namespace}");
    Ok(Cassandra::open(&address, settings)?.links())
}

async fn wait_until_answered(links: &Links) -> Result<()> {
    let started = Instant::now();
    loop {
        match links.ping().await {
            Ok(()) => return Ok(()),
            Err(error) if started.elapsed() > BACK_WITHIN => bail!("still away: {error:?}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
