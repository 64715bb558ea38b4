//! An alias that many clients want at once, each with a session of its own, while answers get lost and nodes die.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use curt_cassandra::{Cassandra, CassandraSettings, Replication};
use curt_testkit::alias_race::{
    Links, judge_round, race, race_while_lines_break, wait_until_answered,
};
use curt_testkit::engines::cassandra::{self, Cluster};
use curt_testkit::engines::proxy::Proxy;
use curt_testkit::engines::unique;
use curt_testkit::length::{is_full, length};
use curt_testkit::need;

use crate::world::settings;

const CLIENTS: usize = 16;
const NODES: usize = 3;

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
    let (mut proxies, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..CLIENTS {
        let proxy = Proxy::to(address)?;
        clients.push(open(&proxy.address().to_string(), &namespace, &hasty)?);
        proxies.push(proxy);
    }
    let aliases = length(20, 1_000);
    let doubts = race_while_lines_break(&judge, &clients, &proxies, aliases).await?;
    println!("{doubts} left in doubt");
    Ok(())
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
        doubts += judge_round(&judge, &round?).await?;
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
