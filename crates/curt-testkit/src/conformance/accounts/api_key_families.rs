//! API keys that other API keys made: what they keep, and how they end.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use curt_core::account::ApiKeyNumber;
use curt_core::ports::{KeysToRevoke, NewApiKey};
use curt_core::{OwnerId, UnixMillis};

use super::Port;
use crate::conformance::{HOSTILE_TEXTS, RACERS, race, same};
use crate::sample::{NOW, api_key, later};

fn child(prefix: &str, user: u64, parent: &str) -> NewApiKey {
    NewApiKey {
        parent: Some(parent.into()),
        ..api_key(prefix, user, prefix)
    }
}

async fn add(accounts: &Port, key: &NewApiKey) -> Result<ApiKeyNumber> {
    let number = accounts.add_api_key(key).await?;
    number.with_context(|| format!("{} was refused", key.prefix))
}

async fn revoke(accounts: &Port, prefix: &str, at: UnixMillis) -> Result<Vec<Box<str>>> {
    let which = KeysToRevoke::Prefix(prefix);
    Ok(accounts.revoke_api_keys(which, at).await?)
}

fn prefixes(named: &[&str]) -> Vec<Box<str>> {
    named.iter().map(|prefix| (*prefix).into()).collect()
}

pub async fn parent_and_bucket_of_an_api_key_are_kept(accounts: Port) -> Result<()> {
    let root = api_key("root", 1, "root");
    let number = add(&accounts, &root).await?;
    let key = NewApiKey {
        bucket: Some(number),
        ..child("child", 1, "root")
    };
    let want = key.numbered(add(&accounts, &key).await?);
    same("child", accounts.api_key("child").await?, Some(want))?;
    let stored = accounts.api_key("root").await?.context("root")?;
    same("a bucket of its own", stored.bucket, number)?;
    same("no parent", stored.parent, None)?;
    for (n, text) in HOSTILE_TEXTS.iter().enumerate() {
        add(&accounts, &api_key(text, 1, text)).await?;
        let prefix = format!("child{n}");
        add(&accounts, &child(&prefix, 1, text)).await?;
        let mut ended = prefixes(&[text, &prefix]);
        ended.sort_unstable();
        same(text, revoke(&accounts, text, NOW).await?, ended)?;
    }
    Ok(())
}

pub async fn a_key_is_added_below_one_in_force_only(accounts: Port) -> Result<()> {
    let expiring = NewApiKey {
        expires_at: Some(later(10)),
        ..api_key("expiring", 1, "expiring")
    };
    add(&accounts, &expiring).await?;
    add(&accounts, &api_key("revoked", 1, "revoked")).await?;
    revoke(&accounts, "revoked", later(10)).await?;
    for parent in ["expiring", "revoked"] {
        let made_at = |at, prefix: &str| NewApiKey {
            created_at: at,
            ..child(prefix, 1, parent)
        };
        let just_before = UnixMillis(later(10).0 - 1);
        add(&accounts, &made_at(just_before, &format!("1{parent}"))).await?;
        let refused = made_at(later(10), &format!("2{parent}"));
        same(parent, accounts.add_api_key(&refused).await?, None)?;
    }
    for prefix in ["1expiring", "1revoked"] {
        let key = accounts.api_key(prefix).await?.context("added")?;
        same("with its parent", key.expires_at, Some(later(10)))?;
    }
    let sooner = NewApiKey {
        expires_at: Some(later(5)),
        ..child("sooner", 1, "revoked")
    };
    add(&accounts, &sooner).await?;
    let sooner = accounts.api_key("sooner").await?.context("added")?;
    same("sooner", sooner.expires_at, Some(later(5)))?;
    let orphan = child("orphan", 1, "absent");
    same("absent", accounts.add_api_key(&orphan).await?, None)?;
    same("keys", accounts.api_keys(None).await?.len(), 5)
}

/// `a` made `b` and `c`, and `b` made `d` for somebody else; `e` is a stranger.
async fn with_family(accounts: &Port) -> Result<()> {
    add(accounts, &api_key("a", 1, "a")).await?;
    for key in [
        child("b", 1, "a"),
        child("c", 1, "a"),
        child("d", 2, "b"),
        api_key("e", 1, "e"),
    ] {
        add(accounts, &key).await?;
    }
    Ok(())
}

async fn ends(accounts: &Port) -> Result<Vec<Option<UnixMillis>>> {
    let keys = accounts.api_keys(None).await?;
    Ok(keys.iter().map(|key| key.revoked_at).collect())
}

pub async fn a_family_ends_with_its_oldest_key(accounts: Port) -> Result<()> {
    with_family(&accounts).await?;
    same("c", revoke(&accounts, "c", NOW).await?, prefixes(&["c"]))?;
    let ended = revoke(&accounts, "a", later(5)).await?;
    same("all but c", ended, prefixes(&["a", "b", "d"]))?;
    let at = Some(later(5));
    let want = vec![at, at, Some(NOW), at, None];
    same("ends", ends(&accounts).await?, want)?;
    same("twice", revoke(&accounts, "a", later(5)).await?, vec![])?;
    let sooner = revoke(&accounts, "a", later(4)).await?;
    same("sooner", sooner, prefixes(&["a", "b", "d"]))
}

pub async fn a_family_ends_when_its_oldest_key_has_ended_before(accounts: Port) -> Result<()> {
    with_family(&accounts).await?;
    let rotated = accounts
        .rotate_api_key("b", "b (old)", NOW, &api_key("b2", 1, "b"))
        .await?;
    ensure!(rotated.is_some(), "rotated");
    same("d", revoke(&accounts, "b", NOW).await?, prefixes(&["d"]))?;
    let successor = accounts.api_key("b2").await?.context("b2")?;
    same("its successor", successor.revoked_at, None)
}

pub async fn the_keys_of_a_user_end_with_what_they_made(accounts: Port) -> Result<()> {
    with_family(&accounts).await?;
    add(&accounts, &api_key("f", 2, "f")).await?;
    let of = |user| accounts.revoke_api_keys(KeysToRevoke::User(OwnerId(user)), later(1));
    same("of nobody", of(9).await?, vec![])?;
    same("of one", of(1).await?, prefixes(&["a", "b", "c", "d", "e"]))?;
    same("of the other", of(2).await?, prefixes(&["f"]))?;
    same("twice", of(1).await?, vec![])
}

pub async fn a_successor_keeps_a_parent_that_has_ended(accounts: Port) -> Result<()> {
    with_family(&accounts).await?;
    let retired = accounts
        .rotate_api_key("a", "a (old)", NOW, &api_key("a2", 1, "a"))
        .await?;
    ensure!(retired.is_some(), "rotated");
    let successor = child("b2", 1, "a");
    let rotated = accounts
        .rotate_api_key("b", "b (old)", later(9), &successor)
        .await?;
    ensure!(rotated.is_some(), "its parent has ended by itself");
    let successor = accounts.api_key("b2").await?.context("b2")?;
    same("without end", successor.expires_at, None)?;
    let ended = revoke(&accounts, "a", NOW).await?;
    same("below a", ended, prefixes(&["b", "b2", "c", "d"]))
}

pub async fn a_successor_has_no_new_parent_that_has_ended(accounts: Port) -> Result<()> {
    with_family(&accounts).await?;
    revoke(&accounts, "c", NOW).await?;
    let before = accounts.api_keys(None).await?;
    for parent in ["c", "absent"] {
        let rotated = accounts
            .rotate_api_key("e", "e (old)", NOW, &child("e2", 1, parent))
            .await?;
        same(parent, rotated, None)?;
    }
    same("unchanged", accounts.api_keys(None).await?, before)?;
    let rotated = accounts
        .rotate_api_key("e", "e (old)", later(9), &child("e2", 1, "e"))
        .await?;
    ensure!(rotated.is_some(), "by itself");
    let ended = revoke(&accounts, "e", NOW).await?;
    same("with what it made", ended, prefixes(&["e", "e2"]))
}

pub async fn no_racer_adds_a_key_below_one_that_was_revoked(accounts: Port) -> Result<()> {
    add(&accounts, &api_key("root", 1, "root")).await?;
    race(RACERS, |n| {
        let accounts = Arc::clone(&accounts);
        async move {
            if n == RACERS / 2 {
                let which = KeysToRevoke::Prefix("root");
                accounts.revoke_api_keys(which, NOW).await?;
                return Ok(true);
            }
            // Half of them below the root, half below what the others made.
            let parent = match n % 2 {
                0 => "root".to_owned(),
                _ => format!("child{}", n - 1),
            };
            let key = child(&format!("child{n}"), n as u64, &parent);
            Ok(accounts.add_api_key(&key).await?.is_some())
        }
    })
    .await?;
    let keys = accounts.api_keys(None).await?;
    let alive: Vec<_> = keys.iter().filter(|key| key.is_in_force(NOW)).collect();
    ensure!(alive.is_empty(), "{alive:?}");
    Ok(())
}
