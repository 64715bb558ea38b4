use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::Session;
use curt_core::{OwnerId, UnixMillis};

use super::{MIXED_HASH, Port, winners};
use crate::conformance::{HOSTILE_TEXTS, RACERS, race, same};
use crate::sample::{NOW, later, session};

const ANN: OwnerId = OwnerId(1);
const BOB: OwnerId = OwnerId(2);

async fn add(accounts: &Port, sessions: impl IntoIterator<Item = Session>) -> Result<()> {
    for session in sessions {
        let added = accounts.add_session(&session).await?;
        ensure!(added, "{} was refused", session.id);
    }
    Ok(())
}

fn ids(sessions: &[Session]) -> Vec<&str> {
    sessions.iter().map(|session| &*session.id).collect()
}

fn expiring(id: &str, at: UnixMillis) -> Session {
    Session {
        expires_at: at,
        ..session(id, 1)
    }
}

pub async fn a_session_is_found_by_id(accounts: Port) -> Result<()> {
    same("before", accounts.session("aB0").await?, None)?;
    add(&accounts, [session("aB0", 1)]).await?;
    let got = accounts.session("aB0").await?;
    same("by id", got, Some(session("aB0", 1)))?;
    same("another case", accounts.session("ab0").await?, None)
}

pub async fn the_id_of_a_session_is_taken_once(accounts: Port) -> Result<()> {
    add(&accounts, [expiring("a", NOW)]).await?;
    for again in [expiring("a", NOW), session("a", 2)] {
        ensure!(!accounts.add_session(&again).await?, "the id is taken");
    }
    let got = accounts.session("a").await?;
    same("the first, expired or not", got, Some(expiring("a", NOW)))
}

pub async fn every_field_of_a_session_is_kept(accounts: Port) -> Result<()> {
    let full = Session {
        id: "full".into(),
        secret_hash: MIXED_HASH,
        user: OwnerId(u64::MAX >> 1),
        created_at: UnixMillis(-3),
        used_at: UnixMillis(-2),
        expires_at: UnixMillis::MAX,
        agent: "".into(),
    };
    add(&accounts, [full.clone()]).await?;
    same("as stored", accounts.session("full").await?, Some(full))
}

pub async fn texts_of_a_session_are_kept_verbatim(accounts: Port) -> Result<()> {
    for text in HOSTILE_TEXTS {
        let session = Session {
            agent: text.into(),
            ..session(text, 1)
        };
        add(&accounts, [session.clone()]).await?;
        same(text, accounts.session(text).await?, Some(session))?;
    }
    Ok(())
}

pub async fn sessions_of_a_user_come_newest_first(accounts: Port) -> Result<()> {
    let begun = |id, user, at| Session {
        created_at: at,
        ..session(id, user)
    };
    let all = [
        begun("b", 1, later(2)),
        begun("x", 2, later(3)),
        begun("c", 1, later(1)),
        begun("a", 1, later(4)),
    ];
    add(&accounts, all.clone()).await?;
    let got = accounts.sessions(ANN, NOW).await?;
    let [b, x, c, a] = all;
    same("of one", got, vec![a, b, c])?;
    same("of the other", accounts.sessions(BOB, NOW).await?, vec![x])?;
    same(
        "of nobody",
        accounts.sessions(OwnerId(3), NOW).await?,
        vec![],
    )
}

pub async fn expired_sessions_are_found_but_not_listed(accounts: Port) -> Result<()> {
    add(&accounts, [expiring("a", later(5))]).await?;
    let just_before = UnixMillis(later(5).0 - 1);
    let listed = accounts.sessions(ANN, just_before).await?;
    same("just before", ids(&listed), vec!["a"])?;
    same("then", accounts.sessions(ANN, later(5)).await?, vec![])?;
    ensure!(accounts.session("a").await?.is_some(), "still found");
    Ok(())
}

pub async fn a_session_is_ended_once_by_its_user(accounts: Port) -> Result<()> {
    add(&accounts, [session("a", 1), session("b", 1)]).await?;
    ensure!(!accounts.end_session(ANN, "absent").await?, "absent");
    ensure!(!accounts.end_session(BOB, "a").await?, "somebody else's");
    ensure!(accounts.session("a").await?.is_some(), "still there");
    ensure!(accounts.end_session(ANN, "a").await?, "ended");
    ensure!(!accounts.end_session(ANN, "a").await?, "called twice");
    same("gone", accounts.session("a").await?, None)?;
    ensure!(accounts.session("b").await?.is_some(), "the other");
    Ok(())
}

pub async fn all_sessions_but_one_are_ended(accounts: Port) -> Result<()> {
    let of_ann = ["a", "b", "c"].map(|id| session(id, 1));
    add(&accounts, of_ann).await?;
    add(&accounts, [session("x", 2), expiring("old", NOW)]).await?;
    let but = |id| accounts.end_sessions(ANN, id);
    same("all but b", but(Some("b")).await?, 3)?;
    same("called twice", but(Some("b")).await?, 0)?;
    let listed = accounts.sessions(ANN, NOW).await?;
    same("left", ids(&listed), vec!["b"])?;
    same("but somebody else's", but(Some("x")).await?, 1)?;
    same("none is left", but(None).await?, 0)?;
    ensure!(accounts.session("x").await?.is_some(), "somebody else's");
    same("all", accounts.end_sessions(BOB, None).await?, 1)
}

pub async fn the_use_of_a_session_moves_its_expiry(accounts: Port) -> Result<()> {
    add(&accounts, [session("a", 1), session("b", 1)]).await?;
    let touch = |used_at, expires_at| accounts.touch_session("a", used_at, expires_at);
    accounts.touch_session("absent", NOW, NOW).await?;
    same("absent", accounts.session("absent").await?, None)?;
    touch(NOW, later(400)).await?;
    let expires_at = async || anyhow::Ok(accounts.session("a").await?.map(|a| a.expires_at));
    same("used again at once", expires_at().await?, Some(later(400)))?;
    touch(later(5), later(500)).await?;
    let want = Session {
        used_at: later(5),
        expires_at: later(500),
        ..session("a", 1)
    };
    let used = async || accounts.session("a").await;
    same("used", used().await?, Some(want.clone()))?;
    touch(later(5), later(500)).await?;
    same("called twice", used().await?, Some(want.clone()))?;
    touch(later(4), later(900)).await?;
    same("used later already", used().await?, Some(want))?;
    let other = accounts.session("b").await?;
    same("the other", other, Some(session("b", 1)))
}

pub async fn expired_sessions_are_purged_in_batches(accounts: Port) -> Result<()> {
    let expired = (0..5).map(|n| expiring(&format!("e{n}"), later(n)));
    add(&accounts, expired).await?;
    let valid = [expiring("v", later(5)), session("w", 2)];
    add(&accounts, valid).await?;
    let purge = |limit| accounts.purge_sessions(later(4), limit);
    same("none asked for", purge(0).await?, 0)?;
    same("a batch", purge(3).await?, 3)?;
    same("the rest", purge(3).await?, 2)?;
    same("called again", purge(usize::MAX).await?, 0)?;
    for id in ["v", "w"] {
        ensure!(accounts.session(id).await?.is_some(), "{id} is valid");
    }
    Ok(())
}

pub async fn one_racer_adds_the_session(accounts: Port) -> Result<()> {
    let added = race(RACERS, |n| {
        let accounts = Arc::clone(&accounts);
        let own = session("a", n as u64);
        async move { accounts.add_session(&own).await }
    })
    .await?;
    same("winners", winners(&added), 1)
}

pub async fn one_racer_ends_the_session(accounts: Port) -> Result<()> {
    add(&accounts, [session("a", 1)]).await?;
    let ended = race(RACERS, |_| {
        let accounts = Arc::clone(&accounts);
        async move { accounts.end_session(ANN, "a").await }
    })
    .await?;
    same("winners", winners(&ended), 1)
}

pub async fn racing_purges_without_a_limit_share_what_has_expired(accounts: Port) -> Result<()> {
    let expired = (0..5).map(|n| expiring(&format!("e{n}"), NOW));
    add(&accounts, expired).await?;
    let purged = race(RACERS, |_| {
        let accounts = Arc::clone(&accounts);
        async move { accounts.purge_sessions(NOW, usize::MAX).await }
    })
    .await?;
    same("purged", purged.iter().sum(), 5)
}

pub async fn sessions_survive_reopening(
    folder: &Path,
    open: impl AsyncFn(&Path) -> Port,
) -> Result<()> {
    let accounts = open(folder).await;
    add(&accounts, ["a", "b", "c"].map(|id| session(id, 1))).await?;
    accounts.touch_session("a", later(5), later(900)).await?;
    ensure!(accounts.end_session(ANN, "b").await?, "ended");
    let sessions = accounts.sessions(ANN, NOW).await?;
    drop(accounts);
    let accounts = open(folder).await;
    same("sessions", accounts.sessions(ANN, NOW).await?, sessions)?;
    same("ended for good", accounts.session("b").await?, None)
}
