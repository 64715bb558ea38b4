use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::account::Role;
use curt_core::ports::Invite;
use curt_core::{OwnerId, UnixMillis};

use super::{MIXED_HASH, Port, winners};
use crate::conformance::{RACERS, race, same};
use crate::sample::{NOW, invite, later};

async fn add(accounts: &Port, invite: &Invite) -> Result<()> {
    ensure!(accounts.add_invite(invite).await?, "added");
    Ok(())
}

pub async fn an_invitation_is_found_by_hash_and_stays(accounts: Port) -> Result<()> {
    let find = |hash: &'static [u8; 32]| accounts.invite(hash, NOW);
    same("before", find(&[1; 32]).await?, None)?;
    add(&accounts, &invite(1)).await?;
    for time in ["first", "again"] {
        same(time, find(&[1; 32]).await?, Some(invite(1)))?;
    }
    same("another", find(&[2; 32]).await?, None)
}

pub async fn every_field_of_an_invitation_is_kept(accounts: Port) -> Result<()> {
    let full = Invite {
        secret_hash: MIXED_HASH,
        role: Role::Admin,
        made_by: OwnerId(u64::MAX >> 1),
        created_at: UnixMillis(-1),
        expires_at: UnixMillis::MAX,
    };
    add(&accounts, &full).await?;
    let found = accounts.invite(&MIXED_HASH, NOW).await?;
    same("found", found, Some(full.clone()))?;
    let taken = accounts.take_invite(&MIXED_HASH, NOW).await?;
    same("taken", taken, Some(full))
}

pub async fn the_hash_of_an_invitation_is_taken_once(accounts: Port) -> Result<()> {
    add(&accounts, &invite(1)).await?;
    let other = Invite {
        role: Role::Admin,
        ..invite(1)
    };
    ensure!(!accounts.add_invite(&other).await?, "the hash is known");
    let found = accounts.invite(&[1; 32], NOW).await?;
    same("the first", found, Some(invite(1)))
}

pub async fn an_invitation_is_taken_once(accounts: Port) -> Result<()> {
    add(&accounts, &invite(1)).await?;
    add(&accounts, &invite(2)).await?;
    let take = |hash: &'static [u8; 32]| accounts.take_invite(hash, NOW);
    same("absent", take(&[3; 32]).await?, None)?;
    same("taken", take(&[1; 32]).await?, Some(invite(1)))?;
    same("called twice", take(&[1; 32]).await?, None)?;
    same("gone", accounts.invite(&[1; 32], NOW).await?, None)?;
    let other = accounts.invite(&[2; 32], NOW).await?;
    same("the other", other, Some(invite(2)))
}

pub async fn an_expired_invitation_is_as_good_as_absent(accounts: Port) -> Result<()> {
    let expiring = Invite {
        expires_at: later(5),
        ..invite(1)
    };
    add(&accounts, &expiring).await?;
    same("found", accounts.invite(&[1; 32], later(5)).await?, None)?;
    let taken = accounts.take_invite(&[1; 32], later(5)).await?;
    same("taken", taken, None)?;
    let just_before = UnixMillis(later(5).0 - 1);
    let taken = accounts.take_invite(&[1; 32], just_before).await?;
    same("just before", taken, Some(expiring))
}

pub async fn open_invitations_are_listed_by_their_end(accounts: Port) -> Result<()> {
    let listed = |now, limit| accounts.invites(now, limit);
    let none = listed(NOW, 10).await?;
    ensure!(none.invites.is_empty() && none.is_complete, "{none:?}");
    let ending = |hash, seconds| Invite {
        expires_at: later(seconds),
        ..invite(hash)
    };
    let [first, second, taken, last] = [(3, 5), (1, 7), (4, 8), (2, 9)].map(|(h, s)| ending(h, s));
    for invite in [&last, &taken, &second, &first] {
        add(&accounts, invite).await?;
    }
    accounts.take_invite(&taken.secret_hash, NOW).await?;
    let all = listed(NOW, 3).await?;
    let wanted = vec![first.clone(), second.clone(), last.clone()];
    same("all", &all.invites, &wanted)?;
    ensure!(all.is_complete, "nothing was left out");
    let cut = listed(NOW, 2).await?;
    same("cut", &cut.invites, &vec![first, second.clone()])?;
    ensure!(!cut.is_complete, "one was left out");
    let after_first = listed(later(5), 10).await?;
    same("expired", &after_first.invites, &vec![second, last])
}

pub async fn one_racer_takes_the_invitation(accounts: Port) -> Result<()> {
    add(&accounts, &invite(1)).await?;
    let taken = race(RACERS, |_| {
        let accounts = Arc::clone(&accounts);
        async move { Ok(accounts.take_invite(&[1; 32], NOW).await?.is_some()) }
    })
    .await?;
    same("winners", winners(&taken), 1)
}

pub async fn invites_survive_reopening(
    folder: &Path,
    open: impl AsyncFn(&Path) -> Port,
) -> Result<()> {
    let accounts = open(folder).await;
    add(&accounts, &invite(1)).await?;
    add(&accounts, &invite(2)).await?;
    let taken = accounts.take_invite(&[1; 32], NOW).await?;
    same("taken", taken, Some(invite(1)))?;
    drop(accounts);
    let accounts = open(folder).await;
    let again = accounts.take_invite(&[1; 32], NOW).await?;
    same("taken for good", again, None)?;
    let other = accounts.take_invite(&[2; 32], NOW).await?;
    same("the other", other, Some(invite(2)))
}
