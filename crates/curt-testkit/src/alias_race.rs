//! An alias that many clients want at once, each with connections of its own, while answers get lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use curt_core::ports::{Inserted, LinkDatabase};
use curt_core::{Link, PortResult};
use rand::RngExt as _;

use crate::engines::proxy::{Line, Proxy};
use crate::sample::{alias, id, target};

/// Between two breaks of lines.
const BREAKS_WITHIN_MILLIS: u64 = 8;
/// Longer than a write waits for its answer, and shorter than a call of a second.
const DEAF_FOR: Duration = Duration::from_millis(600);
/// How long an engine may need to find itself again.
const BACK_WITHIN: Duration = Duration::from_secs(120);

pub type Links = Arc<dyn LinkDatabase>;

/// What each client of a round was told.
pub struct Round {
    pub key: String,
    pub told: Vec<PortResult<Vec<Inserted>>>,
}

fn own_target(client: usize) -> String {
    format!("https://example.com/{client}")
}

/// All clients insert the same alias, each with a target of its own.
pub async fn race(clients: &[Links], key: String) -> Result<Round> {
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
        told.push(racer.await?);
    }
    Ok(Round { key, told })
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
pub async fn judge_round(judge: &Links, round: &Round) -> Result<usize> {
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
        let owner = (0..told.len()).find(|client| own_target(*client) == owner);
        let owner = owner.context("a stranger has the link")?;
        ensure!(!is_conflict(&told[owner]), "{key}: its owner was refused");
    }
    Ok(doubts)
}

/// Races for aliases, one after the other, while lines break; returns how many answers were left in doubt.
pub async fn race_while_lines_break(
    judge: &Links,
    clients: &[Links],
    proxies: &[Proxy],
    aliases: usize,
) -> Result<usize> {
    for client in clients {
        wait_until_answered(client).await?;
    }
    let mut doubts = 0;
    for number in 0..aliases {
        let key = format!("alias{number}");
        let (round, ()) = tokio::join!(race(clients, key), break_lines(proxies));
        doubts += judge_round(judge, &round?).await?;
    }
    let delayed: u64 = proxies.iter().map(Proxy::answers_delayed).sum();
    ensure!(delayed > 0, "no answer was late");
    Ok(doubts)
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

/// Returns when the store answers.
pub async fn wait_until_answered(links: &Links) -> Result<()> {
    let started = Instant::now();
    loop {
        match links.ping().await {
            Ok(()) => return Ok(()),
            Err(error) if started.elapsed() > BACK_WITHIN => bail!("still away: {error:?}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
