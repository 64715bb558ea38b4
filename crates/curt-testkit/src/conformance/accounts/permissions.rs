use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::Permission;
use curt_core::{DomainId, LinkId, OwnerId, UnixMillis};

use super::{Port, winners};
use crate::conformance::{RACERS, race, same};
use crate::sample::{NOW, id, key, later, released};

const ANN: OwnerId = OwnerId(1);
const BOB: OwnerId = OwnerId(2);

async fn grant(accounts: &Port, user: OwnerId, link: &LinkId) -> Result<Permission> {
    Ok(accounts.grant(user, link, 1, NOW).await?)
}

pub async fn a_permission_lets_one_user_follow_one_link(accounts: Port) -> Result<()> {
    let other_domain = LinkId::new(DomainId(1), key("a"));
    let may = |user, link: &'static str| {
        let accounts = Arc::clone(&accounts);
        async move { accounts.may_follow(user, &id(link), 1).await }
    };
    ensure!(!may(ANN, "a").await?, "before");
    grant(&accounts, ANN, &id("a")).await?;
    ensure!(may(ANN, "a").await?, "granted");
    ensure!(!may(BOB, "a").await?, "another user");
    for link in ["b", "A", "a.", "aa"] {
        ensure!(!may(ANN, link).await?, "another link: {link}");
    }
    ensure!(
        !accounts.may_follow(ANN, &other_domain, 1).await?,
        "another domain"
    );
    Ok(())
}

pub async fn a_permission_is_granted_once(accounts: Port) -> Result<()> {
    let first = accounts.grant(ANN, &id("a"), 1, NOW).await?;
    let again = accounts.grant(ANN, &id("a"), 1, later(9)).await?;
    same("the earlier one", again, first.clone())?;
    let listed = accounts.permissions(&id("a"), 1, 9).await?;
    same("permissions", listed, vec![first])
}

pub async fn every_field_of_a_permission_is_kept(accounts: Port) -> Result<()> {
    let link = LinkId::new(DomainId(u32::MAX), key(&"K".repeat(64)));
    let user = OwnerId(u64::MAX >> 1);
    let granted = accounts
        .grant(user, &link, u32::MAX, UnixMillis(-1))
        .await?;
    let want = Permission {
        id: granted.id,
        user,
        link: link.clone(),
        generation: u32::MAX,
        granted_at: UnixMillis(-1),
    };
    same("the reply", granted, want.clone())?;
    let listed = accounts.permissions(&link, u32::MAX, 9).await?;
    same("as stored", listed, vec![want])
}

pub async fn a_permission_is_for_one_generation(accounts: Port) -> Result<()> {
    let second = accounts.grant(ANN, &id("a"), 2, NOW).await?;
    for (generation, may) in [(1, false), (2, true), (3, false)] {
        let got = accounts.may_follow(ANN, &id("a"), generation).await?;
        same(&format!("generation {generation}"), got, may)?;
    }
    let third = accounts.grant(ANN, &id("a"), 3, NOW).await?;
    ensure!(third.id > second.id, "a permission of its own");
    let listed = accounts.permissions(&id("a"), 2, 9).await?;
    same("of the second", listed, vec![second])
}

pub async fn permissions_come_oldest_first(accounts: Port) -> Result<()> {
    let mut all = Vec::new();
    for (user, at) in [(3, later(2)), (1, NOW), (2, later(1))] {
        all.push(accounts.grant(OwnerId(user), &id("a"), 1, at).await?);
        grant(&accounts, OwnerId(user), &id("b")).await?;
    }
    let page = |limit| {
        let accounts = Arc::clone(&accounts);
        async move { accounts.permissions(&id("a"), 1, limit).await }
    };
    same("all", page(usize::MAX).await?, all.clone())?;
    all.truncate(2);
    same("some", page(2).await?, all)?;
    same("none asked for", page(0).await?, vec![])?;
    let absent = accounts.permissions(&id("absent"), 1, 9).await?;
    same("of another link", absent, vec![])
}

pub async fn a_permission_is_revoked_once_and_for_its_link(accounts: Port) -> Result<()> {
    let ann = grant(&accounts, ANN, &id("a")).await?;
    let bob = grant(&accounts, BOB, &id("a")).await?;
    ensure!(!accounts.revoke(ann.id, &id("b")).await?, "another link");
    ensure!(accounts.may_follow(ANN, &id("a"), 1).await?, "still there");
    ensure!(accounts.revoke(ann.id, &id("a")).await?, "revoked");
    ensure!(!accounts.revoke(ann.id, &id("a")).await?, "called twice");
    ensure!(!accounts.may_follow(ANN, &id("a"), 1).await?, "gone");
    let left = accounts.permissions(&id("a"), 1, 9).await?;
    same("the other", left, vec![bob])
}

pub async fn ids_of_permissions_are_never_given_twice(accounts: Port) -> Result<()> {
    let first = grant(&accounts, ANN, &id("a")).await?;
    let last = grant(&accounts, BOB, &id("a")).await?;
    ensure!(accounts.revoke(last.id, &id("a")).await?, "revoked");
    let next = grant(&accounts, BOB, &id("a")).await?;
    ensure!(
        first.id < last.id && last.id < next.id,
        "{:?}, {:?}, {:?}",
        first.id,
        last.id,
        next.id
    );
    Ok(())
}

pub async fn permissions_for_released_links_are_revoked(accounts: Port) -> Result<()> {
    for (user, key, generation) in [(ANN, "a", 1), (BOB, "a", 2), (ANN, "b", 1), (BOB, "c", 4)] {
        accounts.grant(user, &id(key), generation, NOW).await?;
    }
    accounts.grant(ANN, &id("a"), 3, NOW).await?;
    for time in ["first", "called twice"] {
        let gone = [released("a", 2), released("c", 4), released("absent", 1)];
        accounts.revoke_released(&gone).await?;
        for (user, key, generation) in [(ANN, "a", 1), (BOB, "a", 2), (BOB, "c", 4)] {
            let may = accounts.may_follow(user, &id(key), generation).await?;
            ensure!(!may, "{time}: {key}, generation {generation}");
        }
    }
    accounts.revoke_released(&[]).await?;
    let next = accounts.may_follow(ANN, &id("a"), 3).await?;
    ensure!(next, "the next link under the key");
    let other = accounts.may_follow(ANN, &id("b"), 1).await?;
    ensure!(other, "the other link");
    Ok(())
}

pub async fn racers_get_the_same_permission(accounts: Port) -> Result<()> {
    let granted = race(RACERS, |n| {
        let accounts = Arc::clone(&accounts);
        async move { accounts.grant(ANN, &id("a"), 1, later(n as u64)).await }
    })
    .await?;
    for other in &granted[1..] {
        same("the one", other, &granted[0])?;
    }
    let listed = accounts.permissions(&id("a"), 1, RACERS).await?;
    same("permissions", listed.len(), 1)
}

pub async fn one_racer_revokes_the_permission(accounts: Port) -> Result<()> {
    let permission = grant(&accounts, ANN, &id("a")).await?;
    let revoked = race(RACERS, |_| {
        let accounts = Arc::clone(&accounts);
        async move { accounts.revoke(permission.id, &id("a")).await }
    })
    .await?;
    same("winners", winners(&revoked), 1)
}

pub async fn permissions_survive_reopening(
    folder: &Path,
    open: impl AsyncFn(&Path) -> Port,
) -> Result<()> {
    let accounts = open(folder).await;
    grant(&accounts, ANN, &id("a")).await?;
    let last = grant(&accounts, BOB, &id("a")).await?;
    ensure!(accounts.revoke(last.id, &id("a")).await?, "revoked");
    let left = accounts.permissions(&id("a"), 1, 9).await?;
    drop(accounts);
    let accounts = open(folder).await;
    same(
        "permissions",
        accounts.permissions(&id("a"), 1, 9).await?,
        left,
    )?;
    let next = grant(&accounts, BOB, &id("a")).await?;
    ensure!(next.id > last.id, "{:?} after {:?}", next.id, last.id);
    Ok(())
}
