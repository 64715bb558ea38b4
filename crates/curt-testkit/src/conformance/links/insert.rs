use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::LinkCounts;
use curt_core::{DomainId, KeyOrigin, Link, LinkState, UnixMillis};

use super::{Port, add, changed, current_counts, expect_counts, stored};
use crate::conformance::{RACERS, race, same};
use crate::sample::{SampleWrites, alias, expiring, id, link, target};

pub async fn answers_a_ping(store: Port) -> Result<()> {
    store.ping().await?;
    Ok(())
}

pub async fn absent_is_none(store: Port) -> Result<()> {
    same("an unknown link", store.get(&id("a")).await?, None)?;
    expect_counts(&store, "nothing", &LinkCounts::default()).await
}

pub async fn an_id_is_given_once_k1(store: Port) -> Result<()> {
    add(&store, [link("a")]).await?;
    let other = Link {
        target: target("https://other.example/"),
        ..alias("a")
    };
    let again = store.insert(vec![other]).await?;
    same("K-1: the second", again, vec![false])?;
    same(
        "the first stays",
        stored(&store, &id("a")).await?,
        link("a"),
    )?;
    let counts = LinkCounts {
        created: vec![(KeyOrigin::Ledger, 1)],
        live: 1,
        ..LinkCounts::default()
    };
    expect_counts(&store, "a conflict", &counts).await
}

pub async fn items_are_independent_and_in_order(store: Port) -> Result<()> {
    add(&store, [link("b"), alias("d")]).await?;
    let links = ["a", "b", "c", "d", "e"].map(link).to_vec();
    let got = store.insert(links).await?;
    let want = vec![true, false, true, false, true];
    same("per link", got, want)?;
    for key in ["a", "c", "e"] {
        same(key, stored(&store, &id(key)).await?, link(key))?;
    }
    Ok(())
}

pub async fn the_first_of_two_in_one_request_wins(store: Port) -> Result<()> {
    let second = Link {
        target: target("https://second.example/"),
        ..link("a")
    };
    let got = store.insert(vec![link("a"), second, link("b")]).await?;
    same("per link", got, vec![true, false, true])?;
    same("the first", stored(&store, &id("a")).await?, link("a"))
}

pub async fn a_row_in_any_state_makes_an_id_taken_k1(store: Port) -> Result<()> {
    let disabled = Link {
        state: LinkState::Disabled,
        ..link("disabled")
    };
    add(
        &store,
        [
            disabled,
            link("deleted"),
            expiring("expired", UnixMillis(1)),
        ],
    )
    .await?;
    changed(&store, store.delete(&id("deleted"), UnixMillis(2)).await?).await?;
    let keys = ["disabled", "deleted", "expired"];
    let got = store.insert(keys.map(alias).to_vec()).await?;
    same("K-1: per link", got, vec![false; keys.len()])
}

pub async fn keys_differ_by_case_k1(store: Port) -> Result<()> {
    let keys = ["aB", "Ab", "ab", "AB"];
    add(&store, keys.map(link)).await?;
    for key in keys {
        same(key, stored(&store, &id(key)).await?, link(key))?;
    }
    same("a part of a key", store.get(&id("a")).await?, None)
}

pub async fn domains_are_apart_k1(store: Port) -> Result<()> {
    let at = |domain| {
        let mut link = link("a");
        link.id.domain = DomainId(domain);
        link.target = target(&format!("https://example.com/{domain}"));
        link
    };
    let domains = [0, 1, u32::MAX];
    add(&store, domains.map(at)).await?;
    for domain in domains {
        let want = at(domain);
        same("per domain", stored(&store, &want.id).await?, want)?;
    }
    let mut other = id("a");
    other.domain = DomainId(2);
    same("another domain", store.get(&other).await?, None)
}

pub async fn an_empty_request_does_nothing(store: Port) -> Result<()> {
    same("outcomes", store.insert(vec![]).await?, vec![])?;
    expect_counts(&store, "nothing", &LinkCounts::default()).await
}

pub async fn a_thousand_links_at_once(store: Port) -> Result<()> {
    add(&store, (0..1_000).map(|n| link(&format!("bulk{n}")))).await?;
    same(
        "the last",
        stored(&store, &id("bulk999")).await?,
        link("bulk999"),
    )?;
    same("live", current_counts(&store).await?.live, 1_000)
}

pub async fn one_racer_wins_k1(store: Port) -> Result<()> {
    for round in 0..4 {
        let key = format!("race{round}");
        let replies = race(RACERS, |n| {
            let store = Arc::clone(&store);
            let own = Link {
                target: target(&format!("https://example.com/{n}")),
                ..alias(&key)
            };
            async move { store.insert(vec![own]).await }
        })
        .await?;
        let winners: Vec<usize> = (0..RACERS).filter(|n| replies[*n] == [true]).collect();
        ensure!(
            winners.len() == 1,
            "K-1: {} racers won {key}",
            winners.len()
        );
        let want = format!("https://example.com/{}", winners[0]);
        let got = stored(&store, &id(&key)).await?;
        same("the winner's target", got.target.as_str(), want.as_str())?;
    }
    same("live", current_counts(&store).await?.live, 4)
}

pub async fn racing_bulks_win_each_key_once_k1(store: Port) -> Result<()> {
    const KEYS: usize = 50;
    let replies = race(16, |n| {
        let store = Arc::clone(&store);
        // Each racer starts at another key, so that they meet in every order.
        let links = (0..KEYS).map(|k| link(&format!("k{}", (k + n * 3) % KEYS)));
        let bulk: Vec<Link> = links.collect();
        async move {
            let ids: Vec<_> = bulk.iter().map(|link| link.id.clone()).collect();
            Ok((ids, store.insert(bulk).await?))
        }
    })
    .await?;
    let mut won = Vec::new();
    for (ids, created) in replies {
        let pairs = ids.into_iter().zip(created);
        won.extend(pairs.filter(|(_, is_created)| *is_created));
    }
    same("K-1: keys won", won.len(), KEYS)?;
    let distinct: HashSet<_> = won.iter().map(|(id, _)| id).collect();
    same("K-1: distinct keys won", distinct.len(), KEYS)?;
    same("live", current_counts(&store).await?.live, KEYS as u64)
}
