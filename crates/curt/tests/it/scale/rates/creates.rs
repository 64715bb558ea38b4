//! Creates over HTTP into four databases, beside inserts of many rows into the same databases.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use curt_bench::load::Limit;
use curt_bench::random::Random;
use curt_testkit::engines::postgres::{SYNCED, Server as Postgres};
use curt_testkit::need;
use tokio::task::JoinSet;

use super::bare::connect;
use super::{BULK, Installation, median};
use crate::alone::alone;
use crate::length::{is_full, length};

const NODES: usize = 4;
/// Requests under way at once, on both sides.
const REQUESTS: usize = 8;
/// Of the rate of the bare inserts.
const RATE_MIN: f64 = 0.7;
const KEY_LENGTH: usize = 9;

#[test]
fn creates_into_four_databases_come_near_bare_inserts() {
    let _alone = alone();
    // Commits are on the disk before they are answered, on both sides.
    judge_creates(&need!(Postgres::start_with(&[SYNCED]))).unwrap();
}

fn judge_creates(engine: &Postgres) -> Result<()> {
    let mut urls = Vec::new();
    for node in 0..NODES {
        engine.sql(&format!("create database node_{node}"))?;
        urls.push(engine.url(&format!("node_{node}")));
    }
    let installation = Installation::start(&[("store.links", &urls.join(","))])?;
    // Every node gets a link that the bare rows are copies of.
    installation.create_links(BULK)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let inserts = runtime.block_on(prepare(&urls))?;
    let (rounds, seconds) = length((1, 0.5), (7, 5.0));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let made = installation.create_in_bulk(REQUESTS, Limit::seconds(seconds))?;
        let time = Duration::from_secs_f64(seconds);
        let rate = runtime.block_on(insert_for(&urls, &inserts, round, time))?;
        if round > 0 {
            ours.push(made.load.items_rate());
            theirs.push(rate);
        }
    }
    let (ours, theirs) = (median(&ours)?, median(&theirs)?);
    let ratio = ours / theirs;
    println!(
        "rates: {ours:.0} links a second over HTTP into {NODES} databases, {theirs:.0} bare rows: {ratio:.2}"
    );
    anyhow::ensure!(
        ratio >= RATE_MIN || !is_full(),
        "{ratio:.2} of bare inserts"
    );
    Ok(())
}

/// Makes a table like that of links, indexes included, in every database, and returns the statement that fills it with
/// copies of one link under the keys `$1` with the targets `$2`.
async fn prepare(urls: &[String]) -> Result<Vec<String>> {
    let mut inserts = Vec::new();
    for url in urls {
        let client = connect(url).await?;
        client
            .batch_execute("create table bare (like links including all)")
            .await?;
        let names = "select column_name::text from information_schema.columns \
            where table_name = 'links' order by ordinal_position";
        let columns = client.query(names, &[]).await?;
        let value = |name: String| match name.as_str() {
            "key" | "target" => format!("new.{name}"),
            _ => format!("sample.{name}"),
        };
        let values: Vec<String> = columns.iter().map(|row| value(row.get(0))).collect();
        inserts.push(format!(
            "insert into bare select {} from (select * from links where state = 0 limit 1) as sample, \
             unnest($1::text[], $2::text[]) as new (key, target) on conflict do nothing",
            values.join(", ")
        ));
    }
    Ok(inserts)
}

/// As generated keys are: each row goes to another place of the indexes.
fn random_key(random: &mut Random) -> String {
    let mut rest = random.next_u64();
    let mut digit = || {
        let digit = u32::try_from(rest % 36).unwrap_or_default();
        rest /= 36;
        char::from_digit(digit, 36).unwrap_or('0')
    };
    (0..KEY_LENGTH).map(|_| digit()).collect()
}

/// Inserts rows into all databases at once, as many in a statement as a node gets of a request in bulk, and returns how
/// many a second there were.
async fn insert_for(
    urls: &[String],
    inserts: &[String],
    round: usize,
    time: Duration,
) -> Result<f64> {
    let mut tasks = JoinSet::new();
    let began = Instant::now();
    for request in 0..REQUESTS {
        for (url, insert) in urls.iter().zip(inserts) {
            let (url, insert) = (url.clone(), insert.clone());
            tasks.spawn(async move {
                let client = connect(&url).await?;
                let statement = client.prepare(&insert).await?;
                let mut rows = 0;
                let mut random = Random::new((round * REQUESTS + request) as u64);
                while began.elapsed() < time {
                    let keys = (0..BULK / NODES).map(|_| random_key(&mut random));
                    let keys: Vec<String> = keys.collect();
                    let target = |key: &String| curt_bench::keys::target_for(key, 60);
                    let targets: Vec<String> = keys.iter().map(target).collect();
                    rows += client.execute(&statement, &[&keys, &targets]).await?;
                }
                anyhow::Ok(rows)
            });
        }
    }
    let mut rows = 0;
    while let Some(done) = tasks.join_next().await {
        rows += done.context("an inserter panicked")??;
    }
    Ok(rows as f64 / began.elapsed().as_secs_f64())
}
