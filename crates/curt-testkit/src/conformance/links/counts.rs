use std::sync::Arc;

use anyhow::Result;
use curt_core::ports::{LinkCounts, RequestToken};
use curt_core::{KeyOrigin, Link, LinkState, Revision};

use super::{Port, add, changed, expect_counts};
use crate::conformance::race;
use crate::sample::{NOW, SampleWrites, alias, expiring, id, later, link};

pub async fn counts_follow_every_write_k2(store: Port) -> Result<()> {
    let mut want = LinkCounts::default();
    let from = |origin, key| Link {
        origin,
        ..link(key)
    };
    add(
        &store,
        [
            link("a"),
            link("b"),
            alias("c"),
            from(KeyOrigin::Random, "d"),
        ],
    )
    .await?;
    let mut created = vec![
        (KeyOrigin::Ledger, 2),
        (KeyOrigin::Alias, 1),
        (KeyOrigin::Random, 1),
    ];
    want.created.clone_from(&created);
    want.live = 4;
    expect_counts(&store, "an insert", &want).await?;

    store.insert(vec![link("a"), alias("c")]).await?;
    expect_counts(&store, "conflicts", &want).await?;

    let token = Some(RequestToken([1; 16]));
    let insert = || store.insert_if_absent(vec![expiring("e", NOW)], token);
    insert().await?;
    created[0].1 = 3;
    want.created.clone_from(&created);
    want.live = 5;
    expect_counts(&store, "an insert with a token", &want).await?;
    insert().await?;
    expect_counts(&store, "its retry", &want).await?;

    let disabled = Link {
        state: LinkState::Disabled,
        ..link("b")
    };
    changed(&store, store.update_at(disabled, Revision::FIRST).await?).await?;
    expect_counts(&store, "an update", &want).await?;

    changed(&store, store.delete(&id("a"), NOW).await?).await?;
    changed(&store, store.delete(&id("c"), NOW).await?).await?;
    store.delete(&id("c"), NOW).await?;
    (want.live, want.deleted, want.deleted_from_ledger) = (3, 2, 1);
    expect_counts(&store, "deletions", &want).await?;

    store
        .purge(&[(id("e"), Revision::FIRST)], later(1), later(1))
        .await?;
    (want.live, want.deleted, want.deleted_from_ledger) = (2, 3, 2);
    expect_counts(&store, "a purge", &want).await?;

    store.release(NOW, 10).await?;
    (
        want.deleted,
        want.deleted_from_ledger,
        want.released_from_ledger,
    ) = (2, 1, 1);
    expect_counts(&store, "a release", &want).await
}

pub async fn counts_stay_exact_under_races_k2(store: Port) -> Result<()> {
    const WORKERS: usize = 16;
    const LINKS: usize = 20;
    race(WORKERS, |n| {
        let store = Arc::clone(&store);
        async move {
            for k in 0..LINKS {
                let own = format!("w{n}k{k}");
                let shared = alias(&format!("shared{k}"));
                store.insert(vec![link(&own), shared]).await?;
                let random = Link {
                    origin: KeyOrigin::Random,
                    ..link(&format!("retried{k}"))
                };
                let token = Some(RequestToken([k as u8; 16]));
                store.insert_if_absent(vec![random], token).await?;
                if k % 2 == 0 {
                    store.delete(&id(&own), NOW).await?;
                }
            }
            Ok(())
        }
    })
    .await?;
    let (all, shared) = ((WORKERS * LINKS) as u64, LINKS as u64);
    let want = LinkCounts {
        created: vec![
            (KeyOrigin::Ledger, all),
            (KeyOrigin::Alias, shared),
            (KeyOrigin::Random, shared),
        ],
        live: all / 2 + 2 * shared,
        deleted: all / 2,
        deleted_from_ledger: all / 2,
        ..LinkCounts::default()
    };
    expect_counts(&store, "races", &want).await
}
