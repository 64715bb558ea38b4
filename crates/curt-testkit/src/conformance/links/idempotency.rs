use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use curt_core::limits::{IDEMPOTENCY_KEPT, IDEMPOTENCY_KEY_BYTES_MAX};
use curt_core::ports::{
    BeginReply, CreatedAtOnce, CreationOutcome, CreationPlan, IdempotentRequest, Inserted,
    LinkChange, RequestToken,
};
use curt_core::{ErrorKind, KeyOrigin, OwnerId, UnixMillis};

use super::{Port, add, changed, current_counts, stored};
use crate::conformance::{HOSTILE_TEXTS, RACERS, race, refused, same};
use crate::sample::{NOW, SampleWrites, alias, id, idempotent, later, link, plan};

fn outcome(keys: &[Option<&str>]) -> CreationOutcome {
    CreationOutcome {
        at: NOW,
        ids: keys.iter().map(|key| key.map(id)).collect(),
    }
}

fn at(at: UnixMillis, plan: CreationPlan) -> CreationPlan {
    CreationPlan { at, ..plan }
}

/// The successor of a plan, with this key for its first link.
fn successor(plan: &CreationPlan, key: &str) -> CreationPlan {
    let mut next = plan.clone();
    next.version += 1;
    next.keys[0].id = id(key);
    next
}

pub async fn a_request_begins_once(store: Port) -> Result<()> {
    let (request, first) = (idempotent("o", 1), plan(1, &["a", "b"]));
    same(
        "first",
        store.begin(&request, &first).await?,
        BeginReply::New,
    )?;
    let again = store.begin(&request, &first).await?;
    same("called twice", again, BeginReply::New)
}

pub async fn a_request_that_did_not_finish_is_resumed(store: Port) -> Result<()> {
    let (request, first) = (idempotent("o", 1), plan(1, &["a", "b"]));
    store.begin(&request, &first).await?;
    for token in 2..4 {
        let retry = at(later(9), plan(token, &["x", "y"]));
        let got = store.begin(&request, &retry).await?;
        same("a retry", got, BeginReply::Resumed(first.clone()))?;
    }
    let next = successor(&first, "c");
    store.replace_plan(&request, &next).await?;
    let got = store.begin(&request, &plan(2, &["x"])).await?;
    same("with its newest plan", got, BeginReply::Resumed(next))
}

pub async fn a_finished_request_is_replayed(store: Port) -> Result<()> {
    let (request, first) = (idempotent("o", 1), plan(1, &["a", "b"]));
    store.begin(&request, &first).await?;
    let want = outcome(&[Some("a"), None]);
    let got = store.finish(&request, first.token, want.clone()).await?;
    same("finished", got, want.clone())?;
    for retry in [first, at(later(9), plan(2, &["x"]))] {
        let got = store.begin(&request, &retry).await?;
        same("a retry", got, BeginReply::Replayed(want.clone()))?;
    }
    Ok(())
}

pub async fn a_different_request_is_a_mismatch(store: Port) -> Result<()> {
    let (request, first) = (idempotent("o", 1), plan(1, &["a"]));
    store.begin(&request, &first).await?;
    let other = idempotent("o", 2);
    let got = store.begin(&other, &plan(2, &["b"])).await?;
    same("while it is open", got, BeginReply::Mismatch)?;
    let finish = store.finish(&request, first.token, outcome(&[None]));
    finish.await?;
    let got = store.begin(&other, &plan(2, &["b"])).await?;
    same("when it is finished", got, BeginReply::Mismatch)
}

pub async fn a_plan_is_replaced_once_per_version(store: Port) -> Result<()> {
    let (request, first) = (idempotent("o", 1), plan(1, &["a", "b"]));
    store.begin(&request, &first).await?;
    let (next, late) = (successor(&first, "c"), successor(&first, "d"));
    let got = store.replace_plan(&request, &next).await?;
    same("the first", got, next.clone())?;
    let got = store.replace_plan(&request, &late).await?;
    same("a second from the same version", got, next.clone())?;
    let after = successor(&next, "e");
    let got = store.replace_plan(&request, &after).await?;
    same("the one after it", got, after)?;
    let gone = store.replace_plan(&idempotent("absent", 1), &next).await;
    refused("without a record", gone, ErrorKind::Invalid)
}

pub async fn the_first_outcome_stays(store: Port) -> Result<()> {
    let (request, first) = (idempotent("o", 1), plan(1, &["a"]));
    store.begin(&request, &first).await?;
    let want = outcome(&[Some("a")]);
    for given in [want.clone(), outcome(&[None])] {
        let got = store.finish(&request, first.token, given).await?;
        same("stored", got, want.clone())?;
    }
    Ok(())
}

pub async fn a_record_of_another_request_is_left_alone(store: Port) -> Result<()> {
    let (request, first) = (idempotent("o", 1), plan(1, &["a"]));
    store.begin(&request, &first).await?;
    let own = outcome(&[Some("b")]);
    let got = store
        .finish(&request, RequestToken([2; 16]), own.clone())
        .await?;
    same("by another token", got, own)?;
    let other = CreationPlan {
        token: RequestToken([2; 16]),
        ..successor(&first, "b")
    };
    let got = store.replace_plan(&request, &other).await;
    refused("a plan of another token", got, ErrorKind::Invalid)?;
    let got = store.begin(&request, &plan(3, &["x"])).await?;
    same("as it was", got, BeginReply::Resumed(first))
}

pub async fn owners_have_their_own_keys(store: Port) -> Result<()> {
    for owner in [0, 1, u64::MAX] {
        let request = IdempotentRequest {
            owner: OwnerId(owner),
            ..idempotent("o", 1)
        };
        let got = store.begin(&request, &plan(1, &["a"])).await?;
        same("per owner", got, BeginReply::New)?;
    }
    Ok(())
}

pub async fn texts_of_keys_are_kept_verbatim(store: Port) -> Result<()> {
    let longest = "x".repeat(IDEMPOTENCY_KEY_BYTES_MAX);
    let texts = HOSTILE_TEXTS.into_iter().chain([&*longest, "a", "A"]);
    for (n, text) in texts.enumerate() {
        let planned = plan(n as u8, &["a"]);
        let got = store.begin(&idempotent(text, 1), &planned).await?;
        same(text, got, BeginReply::New)?;
        let got = store.begin(&idempotent(text, 1), &plan(99, &["b"])).await?;
        same(text, got, BeginReply::Resumed(planned))?;
    }
    Ok(())
}

pub async fn records_count_for_their_time_and_no_longer(store: Port) -> Result<()> {
    let edge = NOW.plus(IDEMPOTENCY_KEPT);
    let over = edge.plus(Duration::from_millis(1));
    for (n, is_finished) in [false, true].into_iter().enumerate() {
        let (request, first) = (idempotent(&format!("o{n}"), 1), plan(1, &["a"]));
        store.begin(&request, &first).await?;
        if is_finished {
            let finish = store.finish(&request, first.token, outcome(&[None]));
            finish.await?;
        }
        let other = idempotent(&request.key, 2);
        let got = store.begin(&other, &at(edge, plan(2, &["b"]))).await?;
        same("kept", got, BeginReply::Mismatch)?;
        let anew = at(over, plan(3, &["b"]));
        same("over", store.begin(&other, &anew).await?, BeginReply::New)?;
        let got = store.begin(&other, &at(over, plan(4, &["c"]))).await?;
        same("the new one counts", got, BeginReply::Resumed(anew))?;
    }
    Ok(())
}

pub async fn a_request_that_nothing_came_of_is_cancelled(store: Port) -> Result<()> {
    let (request, first) = (idempotent("o", 1), plan(1, &["a"]));
    store.begin(&request, &first).await?;
    let other = RequestToken([9; 16]);
    let cancel = |token| store.cancel(&request, token);
    same("another request's", cancel(other).await?, false)?;
    same("its own", cancel(first.token).await?, true)?;
    same("called twice", cancel(first.token).await?, false)?;
    let second = plan(2, &["b"]);
    let begun = store.begin(&request, &second).await?;
    same("begins anew", begun, BeginReply::New)?;
    store
        .finish(&request, second.token, outcome(&[Some("b")]))
        .await?;
    same("finished", cancel(second.token).await?, false)?;
    let got = store.begin(&request, &first).await?;
    same("stays", got, BeginReply::Replayed(outcome(&[Some("b")])))
}

pub async fn old_records_are_forgotten_up_to_the_limit(store: Port) -> Result<()> {
    for n in 0..5 {
        let planned = at(later(n), plan(1, &["a"]));
        store
            .begin(&idempotent(&format!("o{n}"), 1), &planned)
            .await?;
    }
    let forget = |limit| store.forget_before(later(3), limit);
    same("at most the limit", forget(2).await?, 2)?;
    same("the rest", forget(9).await?, 1)?;
    same("called twice", forget(9).await?, 0)?;
    let planned = at(later(9), plan(2, &["b"]));
    for (n, is_gone) in [(2, true), (3, false), (4, false)] {
        let got = store
            .begin(&idempotent(&format!("o{n}"), 1), &planned)
            .await?;
        same("gone", got == BeginReply::New, is_gone)?;
    }
    Ok(())
}

pub async fn a_thousand_keys_are_kept(store: Port) -> Result<()> {
    let keys: Vec<String> = (0..1_000).map(|n| format!("bulk{n}")).collect();
    let keys: Vec<&str> = keys.iter().map(|key| &**key).collect();
    let (request, first) = (idempotent("o", 1), plan(1, &keys));
    store.begin(&request, &first).await?;
    let got = store.begin(&request, &plan(2, &["x"])).await?;
    same("resumed", got, BeginReply::Resumed(first.clone()))?;
    let want = outcome(&keys.iter().map(|key| Some(*key)).collect::<Vec<_>>());
    let got = store.finish(&request, first.token, want.clone()).await?;
    same("finished", got, want)
}

/// An engine that cannot refuses, and does nothing.
pub async fn creating_at_once_is_all_three_steps(store: Port) -> Result<()> {
    let (request, first) = (idempotent("o", 1), plan(1, &["a", "b"]));
    let create = |plan: &CreationPlan, keys: [&str; 2]| {
        let (plan, links) = (plan.clone(), keys.map(link).to_vec());
        let (store, request) = (Arc::clone(&store), request.clone());
        async move { store.create_at_once(&request, &plan, links).await }
    };
    if !store.can_create_at_once() {
        let refusal = create(&first, ["a", "b"]).await;
        refused("an engine without it", refusal, ErrorKind::Invalid)?;
        same("links", current_counts(&store).await?.live, 0)?;
        return same(
            "begun",
            store.begin(&request, &first).await?,
            BeginReply::New,
        );
    }
    let [a, b] = [link("a"), link("b")].map(|link| Inserted::Created(LinkChange::of(&link)));
    let want = outcome(&[Some("a"), Some("b")]);
    let created = CreatedAtOnce {
        begun: BeginReply::New,
        inserted: vec![a, b],
        outcome: Some(want.clone()),
    };
    same("at once", create(&first, ["a", "b"]).await?, created)?;
    let replayed = CreatedAtOnce {
        begun: BeginReply::Replayed(want),
        inserted: Vec::new(),
        outcome: None,
    };
    let retry = create(&plan(2, &["x", "y"]), ["x", "y"]).await?;
    same("a retry", retry, replayed)?;
    let (other, plan) = (idempotent("o", 2), plan(3, &["x"]));
    let other = store.create_at_once(&other, &plan, vec![link("x")]).await?;
    same("another request", other.begun, BeginReply::Mismatch)?;
    same("links", current_counts(&store).await?.live, 2)
}

pub async fn creating_at_once_stops_at_a_taken_key(store: Port) -> Result<()> {
    if !store.can_create_at_once() {
        return Ok(());
    }
    add(&store, [alias("taken")]).await?;
    let (request, mut first) = (idempotent("o", 1), plan(1, &["a", "taken"]));
    let links = || vec![link("a"), link("taken")];
    let a = Inserted::Created(LinkChange::of(&link("a")));
    let got = store.create_at_once(&request, &first, links()).await?;
    same("inserted", got.inserted, vec![a, Inserted::Conflict])?;
    same("with a generated key taken", got.outcome, None)?;
    let retry = store.begin(&request, &plan(2, &["x"])).await?;
    same("a retry", retry, BeginReply::Resumed(first.clone()))?;
    let token = Some(first.token);
    let again = store.insert_if_absent(vec![link("a")], token).await?;
    let before = Inserted::CreatedBefore(LinkChange::of(&link("a")));
    same("the link's token", again, vec![before])?;

    let request = idempotent("p", 1);
    first = plan(3, &["c", "taken"]);
    first.keys[1].origin = KeyOrigin::Alias;
    let links = vec![link("c"), link("taken")];
    let got = store.create_at_once(&request, &first, links).await?;
    let want = outcome(&[Some("c"), None]);
    same("with an alias taken", got.outcome, Some(want.clone()))?;
    let retry = store.begin(&request, &plan(4, &["x"])).await?;
    same("its retry", retry, BeginReply::Replayed(want))
}

pub async fn racing_requests_share_a_plan(store: Port) -> Result<()> {
    let replies = race(RACERS, |n| {
        let store = Arc::clone(&store);
        let own = plan(n as u8, &["a"]);
        async move {
            let reply = store.begin(&idempotent("o", 1), &own).await?;
            Ok(match reply {
                BeginReply::Resumed(plan) => (false, plan.token),
                other => (other == BeginReply::New, own.token),
            })
        }
    })
    .await?;
    let new = replies.iter().filter(|(is_new, _)| *is_new).count();
    same("began", new, 1)?;
    let tokens: HashSet<RequestToken> = replies.iter().map(|(_, token)| *token).collect();
    same("tokens in use", tokens.len(), 1)
}

pub async fn a_link_tells_its_request_k1(store: Port) -> Result<()> {
    let (own, other) = (RequestToken([1; 16]), RequestToken([2; 16]));
    add(&store, [alias("taken")]).await?;
    let links = || vec![link("a"), link("taken"), link("b")];
    let insert = |token| store.insert_if_absent(links(), token);
    let [a, b] = [link("a"), link("b")].map(|link| LinkChange::of(&link));
    use Inserted::{Conflict, Created, CreatedBefore};
    let want = vec![Created(a.clone()), Conflict, Created(b.clone())];
    same("the first time", insert(Some(own)).await?, want)?;
    let want = vec![CreatedBefore(a.clone()), Conflict, CreatedBefore(b.clone())];
    same("again", insert(Some(own)).await?, want)?;
    for token in [Some(other), None] {
        let want = vec![Conflict, Conflict, Conflict];
        same("another request", insert(token).await?, want)?;
    }
    let edited = store.update_at(link("a"), link("a").revision).await?;
    let edited = changed(&store, edited).await?;
    changed(&store, store.delete(&id("b"), NOW).await?).await?;
    let gone = stored(&store, &id("b")).await?;
    let [a, b] = [edited, gone].map(|link| LinkChange::of(&link));
    let want = vec![CreatedBefore(a), Conflict, CreatedBefore(b)];
    same("whatever became of them", insert(Some(own)).await?, want)
}

pub async fn racing_retries_create_each_link_once_k1(store: Port) -> Result<()> {
    const LINKS: usize = 20;
    let replies = race(16, |n| {
        let store = Arc::clone(&store);
        // Four requests for the same keys, each tried four times at once.
        let token = RequestToken([(n % 4) as u8; 16]);
        let links = (0..LINKS).map(|k| link(&format!("k{}", (k + n * 3) % LINKS)));
        let links: Vec<_> = links.collect();
        async move {
            let ids: Vec<_> = links.iter().map(|link| link.id.clone()).collect();
            let inserted = store.insert_if_absent(links, Some(token)).await?;
            Ok((token, ids, inserted))
        }
    })
    .await?;
    let (mut created, mut owners) = (Vec::new(), HashSet::new());
    for (token, ids, inserted) in replies {
        for (id, inserted) in ids.into_iter().zip(inserted) {
            if inserted.is_created() {
                created.push(id.clone());
            }
            if inserted != Inserted::Conflict {
                owners.insert((id, token));
            }
        }
    }
    same("K-1: created", created.len(), LINKS)?;
    ensure!(
        owners.len() == LINKS,
        "K-1: a key is of two requests: {owners:?}"
    );
    same("live", current_counts(&store).await?.live, LINKS as u64)
}
