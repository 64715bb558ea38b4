//! Many clients of two processes who want the same things.

use std::sync::Arc;

use curt_core::ports::RequestToken;
use curt_core::{Link, OwnerId};
use curt_testkit::engines::postgres::shared;
use curt_testkit::need;
use curt_testkit::sample::{alias, id, target};
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
async fn race(processes: &[Links], aliases: usize) -> Vec<(usize, usize)> {
    let mut clients = JoinSet::new();
    for n in 0..CLIENTS {
        let links = Arc::clone(&processes[n % processes.len()]);
        clients.spawn(async move {
            let mut won = Vec::new();
            for step in 0..aliases {
                let number = (step + n * 15) % aliases;
                let token = (n % 2 == 0).then_some(RequestToken([n as u8; 16]));
                let insert = links.insert_if_absent(vec![wish(n, number)], token);
                let inserted = insert.await.unwrap();
                if inserted[0].is_created() {
                    won.push((n, number));
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
    let won = race(&processes, 1_000).await;
    assert_one_winner_each(&processes[0], 1_000, &won).await;
}
