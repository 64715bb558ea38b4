use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use curt_core::account::{Allowance, Role, User};
use curt_core::ports::{QuotaRule, UserChange, UserRemoval};
use curt_core::{OwnerId, UnixMillis};

use super::{Port, winners, with_users};
use crate::conformance::{HOSTILE_TEXTS, RACERS, race, same};
use crate::sample::{NOW, id, later, session, user};

fn rule(amount: u64, period: Duration) -> Option<QuotaRule> {
    Some(QuotaRule { amount, period })
}

/// A user with something in every field, none of it a default.
fn full_user(id: u64, email: &str) -> User {
    User {
        id: OwnerId(id),
        first_name: "Zoë".into(),
        middle_name: Some("van".into()),
        last_name: "Dyck".into(),
        email: email.into(),
        password_hash: Some("$argon2id$v=19$sample".into()),
        role: Role::Admin,
        disabled_at: Some(later(9)),
        allowance: Allowance {
            creations: rule(0, Duration::from_millis(1)),
            redirections: rule(u64::MAX >> 1, Duration::from_hours(24 * 366)),
        },
        created_at: UnixMillis(-5),
        updated_at: UnixMillis::MAX,
    }
}

pub async fn disabled_users_are_listed(accounts: Port) -> Result<()> {
    same("nobody", accounts.disabled_users().await?, vec![])?;
    for id in [9, 4, 5] {
        let user = User {
            disabled_at: (id != 5).then_some(NOW),
            ..user(id, &format!("{id}@example.com"))
        };
        ensure!(accounts.add_user(&user).await?, "user {id}");
    }
    let ids = |ids: &[u64]| ids.iter().copied().map(OwnerId).collect::<Vec<_>>();
    same("by id", accounts.disabled_users().await?, ids(&[4, 9]))?;
    let enabled = User {
        updated_at: later(1),
        ..user(4, "4@example.com")
    };
    accounts.update_user(&enabled, NOW).await?;
    same("enabled", accounts.disabled_users().await?, ids(&[9]))
}

pub async fn a_removed_user_is_gone_with_sessions_and_permissions(accounts: Port) -> Result<()> {
    with_users(&accounts).await?;
    let (ann, link) = (OwnerId(1), id("private"));
    for number in [1, 2] {
        let session = session(&number.to_string(), number);
        ensure!(accounts.add_session(&session).await?, "a session");
        accounts.grant(OwnerId(number), &link, 1, NOW).await?;
    }
    same(
        "removed",
        accounts.remove_user(ann).await?,
        UserRemoval::Removed,
    )?;
    same("gone", accounts.user(ann).await?, None)?;
    same("her sessions", accounts.sessions(ann, NOW).await?, vec![])?;
    ensure!(accounts.session("2").await?.is_some(), "another's session");
    let left = accounts.permissions(&link, 1, 10).await?;
    let left: Vec<OwnerId> = left.iter().map(|one| one.user).collect();
    same("permissions", left, vec![OwnerId(2)])?;
    same(
        "twice",
        accounts.remove_user(ann).await?,
        UserRemoval::Absent,
    )?;
    let again = user(1, "ann@example.com");
    ensure!(accounts.add_user(&again).await?, "her email is free");
    Ok(())
}

/// An administrator, in force or disabled.
fn admin(id: u64, is_disabled: bool) -> User {
    User {
        role: Role::Admin,
        disabled_at: is_disabled.then_some(NOW),
        ..user(id, &format!("{id}@example.com"))
    }
}

pub async fn the_last_administrator_is_not_removed(accounts: Port) -> Result<()> {
    for user in [admin(1, false), admin(2, true), user(3, "3@example.com")] {
        ensure!(accounts.add_user(&user).await?, "added");
    }
    let last = accounts.remove_user(OwnerId(1)).await?;
    same("the only one in force", last, UserRemoval::LastAdmin)?;
    ensure!(accounts.user(OwnerId(1)).await?.is_some(), "she stays");
    for other in [2, 3] {
        let removed = accounts.remove_user(OwnerId(other)).await?;
        same("another", removed, UserRemoval::Removed)?;
    }
    ensure!(accounts.add_user(&admin(4, false)).await?, "a second one");
    same(
        "no longer the last",
        accounts.remove_user(OwnerId(1)).await?,
        UserRemoval::Removed,
    )
}

pub async fn of_administrators_who_remove_each_other_one_stays(accounts: Port) -> Result<()> {
    let all = RACERS as u64;
    for number in 1..=all {
        ensure!(accounts.add_user(&admin(number, false)).await?, "added");
    }
    let removals = race(RACERS, |number| {
        let accounts = Arc::clone(&accounts);
        async move { accounts.remove_user(OwnerId(number as u64 + 1)).await }
    })
    .await?;
    let refused = removals
        .iter()
        .filter(|reply| **reply == UserRemoval::LastAdmin);
    same("refused", refused.count(), 1)?;
    same("left", accounts.users(None, 100).await?.len(), 1)
}

pub async fn a_user_is_found_by_id_and_by_email(accounts: Port) -> Result<()> {
    let ann = user(1, "ann@example.com");
    same("before", accounts.user(OwnerId(1)).await?, None)?;
    ensure!(accounts.add_user(&ann).await?, "added");
    same("by id", accounts.user(OwnerId(1)).await?, Some(ann.clone()))?;
    let by_email = |email: &'static str| accounts.user_by_email(email);
    same("by email", by_email("ann@example.com").await?, Some(ann))?;
    same("another case", by_email("Ann@example.com").await?, None)?;
    same("a part of it", by_email("ann").await?, None)?;
    same("another id", accounts.user(OwnerId(2)).await?, None)
}

pub async fn neither_id_nor_email_of_a_user_is_taken_twice(accounts: Port) -> Result<()> {
    let ann = user(1, "ann@example.com");
    ensure!(accounts.add_user(&ann).await?, "added");
    for (again, why) in [
        (ann.clone(), "called twice"),
        (user(2, "ann@example.com"), "the email is taken"),
        (user(1, "bob@example.com"), "the id is taken"),
    ] {
        ensure!(!accounts.add_user(&again).await?, "{why}");
    }
    same("users", accounts.users(None, 9).await?, vec![ann])?;
    let bob = accounts.user_by_email("bob@example.com").await?;
    same("who was refused", bob, None)
}

pub async fn every_field_of_a_user_is_kept(accounts: Port) -> Result<()> {
    for user in [full_user(u64::MAX >> 1, "full@a"), user(1, "plain@a")] {
        ensure!(accounts.add_user(&user).await?, "added");
        same("by id", accounts.user(user.id).await?, Some(user))?;
    }
    Ok(())
}

pub async fn texts_of_a_user_are_kept_verbatim(accounts: Port) -> Result<()> {
    for (id, text) in (1..).zip(HOSTILE_TEXTS) {
        let user = User {
            first_name: text.into(),
            middle_name: Some(text.into()),
            last_name: text.into(),
            password_hash: Some(text.into()),
            ..user(id, text)
        };
        ensure!(accounts.add_user(&user).await?, "user {text:?}");
        same(text, accounts.user_by_email(text).await?, Some(user))?;
    }
    let all = accounts.users(None, 99).await?;
    same("users", all.len(), HOSTILE_TEXTS.len())
}

pub async fn users_come_in_pages_by_id(accounts: Port) -> Result<()> {
    same("nobody", accounts.users(None, 9).await?, vec![])?;
    let of = |id: u64| user(id, &format!("{id}@example.com"));
    for id in [30, 10, 40, 20] {
        ensure!(accounts.add_user(&of(id)).await?, "added");
    }
    let page = |after: Option<u64>, limit| accounts.users(after.map(OwnerId), limit);
    same("first", page(None, 2).await?, vec![of(10), of(20)])?;
    same("next", page(Some(20), 2).await?, vec![of(30), of(40)])?;
    same("between", page(Some(25), 1).await?, vec![of(30)])?;
    same("last", page(Some(40), 2).await?, vec![])?;
    same("none asked for", page(None, 0).await?, vec![])?;
    same("all", page(None, usize::MAX).await?.len(), 4)
}

pub async fn an_update_replaces_all_but_id_and_creation(accounts: Port) -> Result<()> {
    with_users(&accounts).await?;
    let change = full_user(1, "zoe@example.com");
    let got = accounts.update_user(&change, NOW).await?;
    same("reply", got, UserChange::Changed)?;
    let want = User {
        created_at: NOW,
        ..change
    };
    same("as stored", accounts.user(OwnerId(1)).await?, Some(want))?;
    let bob = accounts.user(OwnerId(2)).await?;
    same("the other", bob, Some(user(2, "bob@example.com")))
}

pub async fn an_update_clears_what_is_gone(accounts: Port) -> Result<()> {
    let full = full_user(1, "ann@example.com");
    ensure!(accounts.add_user(&full).await?, "added");
    let cleared = User {
        created_at: full.created_at,
        updated_at: later(1),
        ..user(1, "ann@example.com")
    };
    let got = accounts.update_user(&cleared, full.updated_at).await?;
    same("reply", got, UserChange::Changed)?;
    same("as stored", accounts.user(OwnerId(1)).await?, Some(cleared))
}

pub async fn an_update_needs_the_time_that_was_seen(accounts: Port) -> Result<()> {
    with_users(&accounts).await?;
    let change = User {
        updated_at: later(1),
        ..user(1, "new@example.com")
    };
    for wrong in [UnixMillis(NOW.0 - 1), UnixMillis(NOW.0 + 1)] {
        let got = accounts.update_user(&change, wrong).await?;
        same("another time", got, UserChange::Stale)?;
    }
    let got = accounts.update_user(&change, NOW).await?;
    same("as seen", got, UserChange::Changed)?;
    let got = accounts.update_user(&change, NOW).await?;
    same("called twice", got, UserChange::Stale)?;
    let taken = User {
        email: "bob@example.com".into(),
        ..change
    };
    let got = accounts.update_user(&taken, NOW).await?;
    same("stale comes before a taken email", got, UserChange::Stale)
}

pub async fn an_update_takes_no_email_of_another(accounts: Port) -> Result<()> {
    with_users(&accounts).await?;
    let change = User {
        updated_at: later(1),
        ..user(1, "bob@example.com")
    };
    let got = accounts.update_user(&change, NOW).await?;
    same("reply", got, UserChange::EmailTaken)?;
    let ann = accounts.user(OwnerId(1)).await?;
    same("unchanged", ann, Some(user(1, "ann@example.com")))?;
    let bob = accounts.user_by_email("bob@example.com").await?;
    same("the email's", bob, Some(user(2, "bob@example.com")))
}

pub async fn an_update_frees_the_old_email(accounts: Port) -> Result<()> {
    with_users(&accounts).await?;
    let change = User {
        updated_at: later(1),
        ..user(1, "new@example.com")
    };
    accounts.update_user(&change, NOW).await?;
    let old = accounts.user_by_email("ann@example.com").await?;
    same("the old one", old, None)?;
    let new = accounts.user_by_email("new@example.com").await?;
    same("the new one", new, Some(change))?;
    let next = user(3, "ann@example.com");
    ensure!(accounts.add_user(&next).await?, "the old one is free");
    Ok(())
}

pub async fn an_update_of_nobody_is_absent(accounts: Port) -> Result<()> {
    with_users(&accounts).await?;
    for email in ["new@example.com", "ann@example.com"] {
        let got = accounts.update_user(&user(3, email), NOW).await?;
        same("reply", got, UserChange::Absent)?;
    }
    same("still absent", accounts.user(OwnerId(3)).await?, None)
}

pub async fn anybody_can_sign_in_once_there_is_a_password(accounts: Port) -> Result<()> {
    ensure!(!accounts.anybody_can_sign_in().await?, "nobody is there");
    with_users(&accounts).await?;
    ensure!(!accounts.anybody_can_sign_in().await?, "without passwords");
    let with_password = User {
        password_hash: Some("$argon2id$v=19$sample".into()),
        disabled_at: Some(NOW),
        updated_at: later(1),
        ..user(2, "bob@example.com")
    };
    accounts.update_user(&with_password, NOW).await?;
    ensure!(accounts.anybody_can_sign_in().await?, "disabled or not");
    Ok(())
}

pub async fn one_racer_adds_the_user(accounts: Port) -> Result<()> {
    let added = race(RACERS, |n| {
        let accounts = Arc::clone(&accounts);
        let own = user(n as u64 + 1, "ann@example.com");
        async move { accounts.add_user(&own).await }
    })
    .await?;
    same("winners", winners(&added), 1)?;
    same("users", accounts.users(None, RACERS).await?.len(), 1)
}

pub async fn one_racer_updates_the_user(accounts: Port) -> Result<()> {
    with_users(&accounts).await?;
    let change_by = |n: usize| User {
        first_name: format!("Ann {n}").into(),
        updated_at: later(n as u64 + 1),
        ..user(1, "ann@example.com")
    };
    let replies = race(RACERS, |n| {
        let accounts = Arc::clone(&accounts);
        let change = change_by(n);
        async move { accounts.update_user(&change, NOW).await }
    })
    .await?;
    let won = |n: &usize| replies[*n] == UserChange::Changed;
    let winners: Vec<usize> = (0..RACERS).filter(won).collect();
    same("winners", winners.len(), 1)?;
    let losers = replies.iter().filter(|r| **r == UserChange::Stale).count();
    same("the others", losers, RACERS - 1)?;
    let stored = accounts.user(OwnerId(1)).await?;
    same("the winner's", stored, Some(change_by(winners[0])))
}

pub async fn one_racer_gets_the_email(accounts: Port) -> Result<()> {
    for id in 0..RACERS as u64 {
        let user = user(id + 1, &format!("{id}@example.com"));
        ensure!(accounts.add_user(&user).await?, "added");
    }
    let replies = race(RACERS, |n| {
        let accounts = Arc::clone(&accounts);
        let change = User {
            updated_at: later(1),
            ..user(n as u64 + 1, "wanted@example.com")
        };
        async move { accounts.update_user(&change, NOW).await }
    })
    .await?;
    let count = |reply| replies.iter().filter(|got| **got == reply).count();
    same("winners", count(UserChange::Changed), 1)?;
    same("the others", count(UserChange::EmailTaken), RACERS - 1)
}

pub async fn users_survive_reopening(
    folder: &Path,
    open: impl AsyncFn(&Path) -> Port,
) -> Result<()> {
    let accounts = open(folder).await;
    with_users(&accounts).await?;
    ensure!(accounts.add_user(&full_user(3, "full@a")).await?, "added");
    let change = User {
        updated_at: later(1),
        ..user(1, "new@example.com")
    };
    accounts.update_user(&change, NOW).await?;
    let users = accounts.users(None, 9).await?;
    drop(accounts);
    let accounts = open(folder).await;
    same("users", accounts.users(None, 9).await?, users)?;
    let again = user(1, "else@example.com");
    ensure!(!accounts.add_user(&again).await?, "ids stay taken");
    let again = user(9, "new@example.com");
    ensure!(!accounts.add_user(&again).await?, "emails stay taken");
    ensure!(accounts.anybody_can_sign_in().await?, "the password");
    Ok(())
}
