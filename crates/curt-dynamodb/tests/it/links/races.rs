//! Stores that share nothing but the tables. Writes of one link from one store wait for each other: only others show that
//! the conditions hold.

use std::time::Duration;

use anyhow::{Result, ensure};
use curt_core::ports::{ChangeReply, Inserted, SpendReply};
use curt_core::{PortResult, UnixMillis};
use curt_dynamodb::{DynamoDb, DynamoDbSettings};
use curt_testkit::alias_race::{Links, judge_round, race, race_while_lines_break};
use curt_testkit::engines::proxy::Proxy;
use curt_testkit::engines::{dynamodb, unique};
use curt_testkit::length::length;
use curt_testkit::need;
use curt_testkit::sample::{alias, id};

use crate::world::settings;

const CLIENTS: usize = 16;

fn open(url: &str, settings: &DynamoDbSettings) -> Result<Links> {
    Ok(DynamoDb::open(url, settings)?.links())
}

/// Stores of their own, on the same tables.
async fn open_clients(count: usize) -> Result<Vec<Links>> {
    let url = dynamodb::shared()?.url(&unique("race"));
    let clients: Result<Vec<Links>> = (0..count).map(|_| open(&url, &settings())).collect();
    let clients = clients?;
    clients[0].ping().await?;
    Ok(clients)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_has_one_winner_among_stores_k1() {
    let clients = need!(open_clients(CLIENTS).await);
    for number in 0..length(5, 200) {
        let round = race(&clients, format!("alias{number}")).await.unwrap();
        let won = |told: &&PortResult<Vec<Inserted>>| {
            matches!(told.as_deref(), Ok([Inserted::Created(_)]))
        };
        assert_eq!(round.told.iter().filter(won).count(), 1, "{}", round.key);
        judge_round(&clients[0], &round).await.unwrap();
    }
}

/// A timed-out write is resolved by its mark: nobody is told a conflict with their own link.
#[tokio::test(flavor = "multi_thread")]
async fn an_alias_has_one_winner_while_answers_are_lost_k1() {
    let server = need!(dynamodb::shared());
    let prefix = unique("race");
    let judge = open(&server.url(&prefix), &settings()).unwrap();
    judge.ping().await.unwrap();
    let hasty = DynamoDbSettings {
        // A write gives up at half of it, so that the call can look what became of it.
        call_timeout: Duration::from_secs(1),
        ..settings()
    };
    let (mut proxies, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..CLIENTS {
        let proxy = Proxy::to(server.address()).unwrap();
        clients.push(open(&dynamodb::url(proxy.address(), &prefix), &hasty).unwrap());
        proxies.push(proxy);
    }
    let aliases = length(5, 200);
    let doubts = race_while_lines_break(&judge, &clients, &proxies, aliases).await;
    println!("{} left in doubt", doubts.unwrap());
}

/// Each round of edits at one revision has one winner, and every click of a limited link is spent once.
#[tokio::test(flavor = "multi_thread")]
async fn stores_that_race_for_a_revision_and_for_clicks_win_each_once() {
    let clients = need!(open_clients(8).await);
    race_for_changes(&clients).await.unwrap();
}

async fn race_for_changes(clients: &[Links]) -> Result<()> {
    let mut link = alias("edited");
    link.max_clicks = Some(4);
    clients[0].insert_if_absent(vec![link], None).await?;
    let link = clients[0].get(&id("edited")).await?.unwrap();
    let spend = clients.iter().map(|links| {
        let (links, link) = (links.clone(), link.clone());
        tokio::spawn(async move { links.spend_click(&link.id, link.revision).await })
    });
    let mut granted = 0;
    for spent in spend.collect::<Vec<_>>() {
        granted += usize::from(spent.await?? == SpendReply::Granted);
    }
    ensure!(granted == 4, "{granted} of 4 clicks were granted");
    let edits = clients.iter().map(|links| {
        let (links, link) = (links.clone(), link.clone());
        tokio::spawn(async move {
            let edited = curt_core::Link {
                updated_at: UnixMillis(link.updated_at.0 + 1),
                ..link.clone()
            };
            links.update_at(edited, link.revision).await
        })
    });
    let mut changed = 0;
    for edit in edits.collect::<Vec<_>>() {
        changed += usize::from(matches!(edit.await??, ChangeReply::Changed(_)));
    }
    ensure!(changed == 1, "{changed} edits of one revision were made");
    Ok(())
}
