use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use curt_core::limits::{IDEMPOTENCY_KEPT, IDEMPOTENCY_KEY_BYTES_MAX};
use curt_core::ports::{InsertReply, InsertRequest, Inserted, LinkCounts, Once, Replay};
use curt_core::{KeyOrigin, OwnerId};

use super::{Port, add, changed, expect_counts, insert, stored};
use crate::conformance::{HOSTILE_TEXTS, RACERS, race, same};
use crate::sample::{NOW, alias, id, link, once, released, replay, request_once};

pub async fn a_repeated_request_is_replayed(store: Port) -> Result<()> {
    let links = || vec![link("a"), alias("b")];
    let got = insert(&store, request_once(links(), once("o", 1))).await?;
    same("the first time", got, vec![Inserted::Created; 2])?;
    let want = InsertReply::Replayed(replay(vec![Some(id("a")), Some(id("b"))]));
    // A client that comes again brings freshly generated keys: the recorded ones count.
    for again in [links(), vec![link("x"), alias("b")]] {
        let got = store.insert(request_once(again, once("o", 1))).await?;
        same("again", got, want.clone())?;
    }
    same("nothing new", store.get(&id("x")).await?, None)?;
    same("live", store.counts().await?.live, 2)
}

pub async fn a_different_request_is_a_mismatch(store: Port) -> Result<()> {
    insert(&store, request_once(vec![link("a")], once("o", 1))).await?;
    let got = store
        .insert(request_once(vec![link("b")], once("o", 2)))
        .await?;
    same("another fingerprint", got, InsertReply::Mismatch)?;
    let mut one_bit = once("o", 1);
    one_bit.fingerprint[31] ^= 1;
    let got = store.insert(request_once(vec![link("b")], one_bit)).await?;
    same("one bit of it", got, InsertReply::Mismatch)?;
    same("nothing new", store.get(&id("b")).await?, None)?;
    let got = store
        .insert(request_once(vec![link("b")], once("o", 1)))
        .await?;
    same(
        "the record stays",
        got,
        InsertReply::Replayed(replay(vec![Some(id("a"))])),
    )
}

pub async fn a_taken_generated_key_withholds_everything(store: Port) -> Result<()> {
    add(&store, [link("taken"), alias("taken-alias")]).await?;
    let links = vec![link("a"), link("taken"), alias("b"), alias("taken-alias")];
    let got = insert(&store, request_once(links, once("o", 1))).await?;
    use Inserted::{Conflict, Withheld};
    same(
        "per link",
        got,
        vec![Withheld, Conflict, Withheld, Conflict],
    )?;
    for key in ["a", "b"] {
        same("nothing is applied", store.get(&id(key)).await?, None)?;
    }
    let counts = LinkCounts {
        created: vec![(KeyOrigin::Ledger, 1), (KeyOrigin::Alias, 1)],
        live: 2,
        ..LinkCounts::default()
    };
    expect_counts(&store, "a withheld request", &counts).await
}

pub async fn a_withheld_request_may_come_again_with_fresh_keys(store: Port) -> Result<()> {
    add(&store, [link("taken")]).await?;
    let tried = vec![link("a"), link("taken")];
    insert(&store, request_once(tried, once("o", 1))).await?;
    let fresh = vec![link("a"), link("b")];
    let got = insert(&store, request_once(fresh, once("o", 1))).await?;
    same("with fresh keys", got, vec![Inserted::Created; 2])?;
    let got = store.insert(request_once(vec![], once("o", 1))).await?;
    let want = InsertReply::Replayed(replay(vec![Some(id("a")), Some(id("b"))]));
    same("then recorded", got, want)
}

pub async fn one_generated_key_twice_in_a_request_withholds_everything(store: Port) -> Result<()> {
    let links = vec![link("a"), link("b"), link("a")];
    let got = insert(&store, request_once(links, once("o", 1))).await?;
    use Inserted::{Conflict, Withheld};
    same("per link", got, vec![Withheld, Withheld, Conflict])?;
    same("nothing is applied", store.counts().await?.live, 0)
}

pub async fn a_taken_alias_is_recorded(store: Port) -> Result<()> {
    add(&store, [alias("taken")]).await?;
    let links = || vec![link("a"), alias("taken"), alias("b"), alias("b")];
    let got = insert(&store, request_once(links(), once("o", 1))).await?;
    use Inserted::{Conflict, Created};
    same("per link", got, vec![Created, Conflict, Created, Conflict])?;
    changed(store.delete(&id("taken"), None, NOW).await?)?;
    let got = store.insert(request_once(links(), once("o", 1))).await?;
    let want = InsertReply::Replayed(replay(vec![Some(id("a")), None, Some(id("b")), None]));
    same("again", got, want)
}

pub async fn a_replay_outlives_its_link(store: Port) -> Result<()> {
    insert(&store, request_once(vec![link("a")], once("o", 1))).await?;
    changed(store.delete(&id("a"), None, NOW).await?)?;
    let got = store
        .insert(request_once(vec![link("b")], once("o", 1)))
        .await?;
    let want = InsertReply::Replayed(replay(vec![Some(id("a"))]));
    same("after a deletion", got, want.clone())?;
    same(
        "released",
        store.release(NOW, 10).await?,
        vec![released("a", 1)],
    )?;
    let got = store
        .insert(request_once(vec![link("b")], once("o", 1)))
        .await?;
    same("after its key was released", got, want)
}

pub async fn owners_have_their_own_keys(store: Port) -> Result<()> {
    let of = |owner| Once {
        owner: OwnerId(owner),
        ..once("o", 1)
    };
    for (owner, key) in [(0, "a"), (1, "b"), (7_000_000_000_000_000_000, "c")] {
        let got = insert(&store, request_once(vec![link(key)], of(owner))).await?;
        same("per owner", got, vec![Inserted::Created])?;
    }
    for (owner, key) in [(0, "a"), (1, "b")] {
        let got = store.insert(request_once(vec![], of(owner))).await?;
        same(
            "again",
            got,
            InsertReply::Replayed(replay(vec![Some(id(key))])),
        )?;
    }
    Ok(())
}

pub async fn texts_of_keys_are_kept_verbatim(store: Port) -> Result<()> {
    let long = "k".repeat(IDEMPOTENCY_KEY_BYTES_MAX);
    let texts = HOSTILE_TEXTS.into_iter().chain(["o", "O", &long]);
    for (n, text) in texts.clone().enumerate() {
        let links = vec![link(&format!("k{n}"))];
        let got = insert(&store, request_once(links, once(text, 1))).await?;
        same(text, got, vec![Inserted::Created])?;
    }
    for (n, text) in texts.enumerate() {
        let got = store.insert(request_once(vec![], once(text, 1))).await?;
        let want = InsertReply::Replayed(replay(vec![Some(id(&format!("k{n}")))]));
        same(text, got, want)?;
    }
    Ok(())
}

pub async fn records_are_kept_for_their_time_and_no_longer(store: Port) -> Result<()> {
    let at = |key, now| InsertRequest {
        now,
        ..request_once(vec![link(key)], once("o", 1))
    };
    let replayed = InsertReply::Replayed(replay(vec![Some(id("a"))]));
    insert(&store, at("a", NOW)).await?;
    let last = NOW.plus(IDEMPOTENCY_KEPT);
    same(
        "at the last instant",
        store.insert(at("b", last)).await?,
        replayed.clone(),
    )?;
    let back = NOW.minus(Duration::from_secs(3_600));
    same(
        "when the clock stepped back",
        store.insert(at("b", back)).await?,
        replayed,
    )?;
    let past = last.plus(Duration::from_millis(1));
    same(
        "past it",
        insert(&store, at("b", past)).await?,
        vec![Inserted::Created],
    )?;
    let got = store.insert(at("c", past)).await?;
    same(
        "recorded anew",
        got,
        InsertReply::Replayed(Replay {
            at: past,
            ..replay(vec![Some(id("b"))])
        }),
    )
}

pub async fn racing_repeats_create_once(store: Port) -> Result<()> {
    let replies = race(RACERS, |n| {
        let store = Arc::clone(&store);
        let own = request_once(vec![link(&format!("k{n}")), alias("same")], once("o", 1));
        async move { Ok((own.links[0].id.clone(), store.insert(own).await?)) }
    })
    .await?;
    let created = InsertReply::Stored(vec![Inserted::Created; 2]);
    let winners: Vec<_> = replies.iter().filter(|(_, got)| *got == created).collect();
    ensure!(winners.len() == 1, "{} racers created", winners.len());
    let winner = &winners[0].0;
    let replayed = InsertReply::Replayed(replay(vec![Some(winner.clone()), Some(id("same"))]));
    for (id, reply) in &replies {
        if id != winner {
            same("the others", reply.clone(), replayed.clone())?;
        }
    }
    stored(&store, winner).await?;
    same("live", store.counts().await?.live, 2)
}
