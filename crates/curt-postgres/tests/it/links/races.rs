//! Many clients of two processes who want the same things.

use std::sync::Arc;

use curt_core::ports::{InsertReply, InsertRequest, Inserted, Once};
use curt_core::{Link, OwnerId};
use curt_testkit::engines::postgres::shared;
use curt_testkit::length::length;
use curt_testkit::need;
use curt_testkit::sample::{alias, id, once, request, request_once, target};
use tokio::task::JoinSet;

use crate::links::world::{Links, open};

const CLIENTS: usize = 64;

/// What client `n` wants to be at an alias.
fn wish(n: usize, alias_number: usize) -> Link {
    Link {
        owner: OwnerId(n as u64),
        target: target(&format!("https://example.com/{n}")),
        ..alias(&format!("alias{alias_number}"))
    }
}

/// Lets every client ask for every alias, each beginning at another one, and returns who was told to have which.
async fn race(
    processes: &[Links],
    aliases: usize,
    ask: fn(usize, usize) -> InsertRequest,
) -> Vec<(usize, usize)> {
    let mut clients = JoinSet::new();
    for n in 0..CLIENTS {
        let links = Arc::clone(&processes[n % processes.len()]);
        clients.spawn(async move {
            let mut won = Vec::new();
            for step in 0..aliases {
                let number = (step + n * 15) % aliases;
                let reply = links.insert(ask(n, number)).await.unwrap();
                match reply {
                    InsertReply::Stored(outcomes) if outcomes == [Inserted::Created] => {
                        won.push((n, number));
                    }
                    InsertReply::Stored(outcomes) => assert_eq!(outcomes, [Inserted::Conflict]),
                    other => panic!("{other:?}"),
                }
            }
            won
        });
    }
    clients.join_all().await.into_iter().flatten().collect()
}

async fn assert_one_winner_each(links: &Links, aliases: usize, won: &[(usize, usize)]) {
    let mut numbers: Vec<usize> = won.iter().map(|(_, number)| *number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..aliases).collect::<Vec<_>>(), "K-1");
    for (n, number) in won {
        let stored = links.get(&id(&format!("alias{number}"))).await.unwrap();
        assert_eq!(stored, Some(wish(*n, *number)), "the winner's");
    }
    let counts = links.counts().await.unwrap();
    assert_eq!(counts.live, aliases as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_alias_has_one_winner_k1() {
    let server = need!(shared());
    let database = server.database("aliases").unwrap();
    let processes = [open(&database.url()), open(&database.url())];
    let ask = |n, number| request(vec![wish(n, number)]);
    let won = race(&processes, 1_000, ask).await;
    assert_one_winner_each(&processes[0], 1_000, &won).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_alias_has_one_winner_among_idempotent_requests_k1() {
    let server = need!(shared());
    let database = server.database("once").unwrap();
    let processes = [open(&database.url()), open(&database.url())];
    let ask = |n: usize, number: usize| {
        let once = Once {
            owner: OwnerId(n as u64),
            ..once(&format!("ask{number}"), 0)
        };
        request_once(vec![wish(n, number)], once)
    };
    let aliases = length(200, 1_000);
    let won = race(&processes, aliases, ask).await;
    assert_one_winner_each(&processes[0], aliases, &won).await;
    let records = database.sql("select count(*) from idempotency").unwrap();
    assert_eq!(records, (CLIENTS * aliases).to_string());
}
