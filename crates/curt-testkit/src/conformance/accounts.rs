//! Clauses of [`Accounts`].

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::{Accounts, ApiKey, Owner};
use curt_core::{OwnerId, UnixMillis};

use super::{RACERS, Suite, race, run_clauses, same};
use crate::sample::{NOW, api_key, later, owner};

type Port = Arc<dyn Accounts>;

pub async fn suite(make: impl AsyncFn() -> Port) {
    let mut suite = Suite::of("Accounts");
    run_clauses!(
        suite,
        make,
        an_owner_is_found_by_name,
        neither_id_nor_name_of_an_owner_is_taken_twice,
        owners_come_oldest_first,
        an_api_key_is_found_by_prefix,
        a_prefix_is_taken_once,
        an_owner_has_one_valid_key_of_a_name,
        keys_come_oldest_first_revoked_ones_too,
        a_key_is_revoked_once,
        texts_are_kept_verbatim,
        one_racer_adds_the_owner,
        one_racer_revokes_the_key,
    );
    suite.finish();
}

/// `open` opens the store in the given folder; what an earlier one wrote there must be found again.
pub async fn suite_durable(folder: &Path, open: impl AsyncFn(&Path) -> Port) {
    let mut suite = Suite::of("Accounts, reopened");
    suite
        .clause("survives_reopening", survives_reopening(folder, open))
        .await;
    suite.finish();
}

async fn an_owner_is_found_by_name(accounts: Port) -> Result<()> {
    same("before", accounts.owner_by_name("ann").await?, None)?;
    ensure!(accounts.add_owner(&owner(1, "ann")).await?, "added");
    same(
        "by name",
        accounts.owner_by_name("ann").await?,
        Some(owner(1, "ann")),
    )?;
    same("another case", accounts.owner_by_name("Ann").await?, None)
}

async fn neither_id_nor_name_of_an_owner_is_taken_twice(accounts: Port) -> Result<()> {
    ensure!(accounts.add_owner(&owner(1, "ann")).await?, "added");
    for (again, why) in [
        (owner(1, "ann"), "called twice"),
        (owner(2, "ann"), "the name is taken"),
        (owner(1, "bob"), "the id is taken"),
    ] {
        ensure!(!accounts.add_owner(&again).await?, "{why}");
    }
    same("owners", accounts.owners().await?, vec![owner(1, "ann")])
}

async fn owners_come_oldest_first(accounts: Port) -> Result<()> {
    let aged = |id, name, at| Owner {
        created_at: at,
        ..owner(id, name)
    };
    let (old, middle, young) = (
        aged(3, "c", UnixMillis(-5)),
        aged(1, "b", NOW),
        aged(2, "a", later(1)),
    );
    for owner in [&young, &old, &middle] {
        ensure!(accounts.add_owner(owner).await?, "added");
    }
    same("owners", accounts.owners().await?, vec![old, middle, young])
}

async fn with_owners(accounts: &Port) -> Result<()> {
    for (id, name) in [(1, "ann"), (2, "bob")] {
        ensure!(accounts.add_owner(&owner(id, name)).await?, "owner {name}");
    }
    Ok(())
}

async fn an_api_key_is_found_by_prefix(accounts: Port) -> Result<()> {
    with_owners(&accounts).await?;
    let mut secret_hash = [0; 32];
    for (place, byte) in secret_hash.iter_mut().zip(0..) {
        *place = byte;
    }
    let key = ApiKey {
        secret_hash,
        expires_at: Some(UnixMillis::MAX),
        ..api_key("aBcD0123", 1, "laptop")
    };
    same("before", accounts.api_key("aBcD0123").await?, None)?;
    ensure!(accounts.add_api_key(&key).await?, "added");
    same("by prefix", accounts.api_key("aBcD0123").await?, Some(key))?;
    same("another case", accounts.api_key("abcd0123").await?, None)
}

async fn a_prefix_is_taken_once(accounts: Port) -> Result<()> {
    with_owners(&accounts).await?;
    let first = api_key("p", 1, "laptop");
    ensure!(accounts.add_api_key(&first).await?, "added");
    ensure!(!accounts.add_api_key(&first).await?, "called twice");
    let other = api_key("p", 2, "server");
    ensure!(!accounts.add_api_key(&other).await?, "the prefix is taken");
    ensure!(accounts.revoke_api_key("p", later(1)).await?, "revoked");
    ensure!(
        !accounts.add_api_key(&other).await?,
        "the prefix of a revoked key stays taken"
    );
    same("keys", accounts.api_keys(None).await?.len(), 1)
}

async fn an_owner_has_one_valid_key_of_a_name(accounts: Port) -> Result<()> {
    with_owners(&accounts).await?;
    ensure!(accounts.add_api_key(&api_key("p1", 1, "x")).await?, "added");
    ensure!(
        !accounts.add_api_key(&api_key("p2", 1, "x")).await?,
        "the same owner has a valid key of that name"
    );
    ensure!(
        accounts.add_api_key(&api_key("p3", 2, "x")).await?,
        "another owner may use the name"
    );
    ensure!(
        accounts.add_api_key(&api_key("p4", 1, "X")).await?,
        "names differ by case"
    );
    ensure!(accounts.revoke_api_key("p1", later(1)).await?, "revoked");
    ensure!(
        accounts.add_api_key(&api_key("p2", 1, "x")).await?,
        "the name is free once its key is revoked"
    );
    Ok(())
}

async fn keys_come_oldest_first_revoked_ones_too(accounts: Port) -> Result<()> {
    with_owners(&accounts).await?;
    let aged = |prefix, owner, at| ApiKey {
        created_at: at,
        ..api_key(prefix, owner, prefix)
    };
    let (old, middle, young) = (
        aged("c", 1, NOW),
        aged("a", 2, later(1)),
        aged("b", 1, later(2)),
    );
    for key in [&young, &old, &middle] {
        ensure!(accounts.add_api_key(key).await?, "added");
    }
    ensure!(accounts.revoke_api_key("c", later(9)).await?, "revoked");
    let old = ApiKey {
        revoked_at: Some(later(9)),
        ..old
    };
    let of = |owner| accounts.api_keys(owner);
    same(
        "of all",
        of(None).await?,
        vec![old.clone(), middle.clone(), young.clone()],
    )?;
    same("of one", of(Some(OwnerId(1))).await?, vec![old, young])?;
    same("of the other", of(Some(OwnerId(2))).await?, vec![middle])?;
    same("of nobody", of(Some(OwnerId(3))).await?, vec![])
}

async fn a_key_is_revoked_once(accounts: Port) -> Result<()> {
    with_owners(&accounts).await?;
    ensure!(!accounts.revoke_api_key("p", NOW).await?, "absent");
    ensure!(accounts.add_api_key(&api_key("p", 1, "x")).await?, "added");
    ensure!(accounts.add_api_key(&api_key("q", 1, "y")).await?, "added");
    ensure!(accounts.revoke_api_key("p", later(1)).await?, "revoked");
    ensure!(
        !accounts.revoke_api_key("p", later(2)).await?,
        "called twice"
    );
    let revoked_at = |key: Option<ApiKey>| key.and_then(|key| key.revoked_at);
    same(
        "the first instant stays",
        revoked_at(accounts.api_key("p").await?),
        Some(later(1)),
    )?;
    same(
        "the other key",
        revoked_at(accounts.api_key("q").await?),
        None,
    )
}

async fn texts_are_kept_verbatim(accounts: Port) -> Result<()> {
    for (id, text) in (1..).zip(super::HOSTILE_TEXTS) {
        let owner = owner(id, text);
        ensure!(accounts.add_owner(&owner).await?, "owner {text:?}");
        same(text, accounts.owner_by_name(text).await?, Some(owner))?;
        let key = api_key(&format!("p{id}"), id, text);
        ensure!(accounts.add_api_key(&key).await?, "key {text:?}");
        same(text, accounts.api_key(&key.prefix).await?, Some(key))?;
    }
    same(
        "owners",
        accounts.owners().await?.len(),
        super::HOSTILE_TEXTS.len(),
    )
}

async fn one_racer_adds_the_owner(accounts: Port) -> Result<()> {
    let added = race(RACERS, |n| {
        let accounts = Arc::clone(&accounts);
        let own = owner(n as u64 + 1, "ann");
        async move { accounts.add_owner(&own).await }
    })
    .await?;
    same("winners", added.iter().filter(|added| **added).count(), 1)?;
    same("owners", accounts.owners().await?.len(), 1)
}

async fn one_racer_revokes_the_key(accounts: Port) -> Result<()> {
    with_owners(&accounts).await?;
    ensure!(accounts.add_api_key(&api_key("p", 1, "x")).await?, "added");
    let revoked = race(RACERS, |_| {
        let accounts = Arc::clone(&accounts);
        async move { accounts.revoke_api_key("p", NOW).await }
    })
    .await?;
    same("winners", revoked.iter().filter(|won| **won).count(), 1)
}

async fn survives_reopening(folder: &Path, open: impl AsyncFn(&Path) -> Port) -> Result<()> {
    let accounts = open(folder).await;
    with_owners(&accounts).await?;
    ensure!(accounts.add_api_key(&api_key("p", 1, "x")).await?, "added");
    ensure!(accounts.add_api_key(&api_key("q", 2, "y")).await?, "added");
    ensure!(accounts.revoke_api_key("q", later(1)).await?, "revoked");
    let (owners, keys) = (accounts.owners().await?, accounts.api_keys(None).await?);
    drop(accounts);
    let accounts = open(folder).await;
    same("owners", accounts.owners().await?, owners)?;
    same("keys", accounts.api_keys(None).await?, keys)?;
    ensure!(
        !accounts.add_owner(&owner(1, "new")).await?,
        "taken ids stay taken"
    );
    Ok(())
}
