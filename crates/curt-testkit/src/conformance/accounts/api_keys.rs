use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use curt_core::account::{Allowance, ApiKeyNumber, Scope, Scopes, User};
use curt_core::ports::{ApiKey, KeysToRevoke, NewApiKey, QuotaRule, RedirectionLimits};
use curt_core::{OwnerId, UnixMillis};

use super::{MIXED_HASH, Port, winners, with_users};
use crate::conformance::{HOSTILE_TEXTS, RACERS, race, same};
use crate::sample::{NOW, api_key, later, user};

const LIMIT: QuotaRule = QuotaRule {
    amount: 3,
    period: Duration::from_millis(1_500),
};

/// Adds a key that nothing stands in the way of.
async fn add(accounts: &Port, key: &NewApiKey) -> Result<ApiKeyNumber> {
    let number = accounts.add_api_key(key).await?;
    number.with_context(|| format!("{} was refused", key.prefix))
}

async fn is_refused(accounts: &Port, key: &NewApiKey, why: &str) -> Result<()> {
    same(why, accounts.add_api_key(key).await?, None)
}

/// Ends one key, and says whether that was its end.
async fn revoke(accounts: &Port, prefix: &str, at: UnixMillis) -> Result<bool> {
    let which = KeysToRevoke::Prefix(prefix);
    let ended = accounts.revoke_api_keys(which, at).await?;
    Ok(ended.iter().any(|ended| &**ended == prefix))
}

/// The key, which must be there.
async fn stored(accounts: &Port, prefix: &str) -> Result<ApiKey> {
    let key = accounts.api_key(prefix).await?;
    key.with_context(|| format!("{prefix} is not stored"))
}

pub async fn an_api_key_is_found_by_prefix(accounts: Port) -> Result<()> {
    with_users(&accounts).await?;
    let key = api_key("aBcD0123", 1, "laptop");
    same("before", accounts.api_key("aBcD0123").await?, None)?;
    let number = add(&accounts, &key).await?;
    let want = key.numbered(number);
    same("by prefix", accounts.api_key("aBcD0123").await?, Some(want))?;
    same("another case", accounts.api_key("abcd0123").await?, None)
}

pub async fn every_field_of_an_api_key_is_kept(accounts: Port) -> Result<()> {
    let key = NewApiKey {
        secret_hash: MIXED_HASH,
        scopes: Scopes::NONE.with(Scope::Read).with(Scope::Manage),
        allowance: Allowance {
            creations: Some(LIMIT),
            redirections: Some(QuotaRule { amount: 0, ..LIMIT }),
        },
        created_at: UnixMillis(-1),
        expires_at: Some(UnixMillis::MAX),
        ..api_key("p", u64::MAX >> 1, "laptop")
    };
    let number = add(&accounts, &key).await?;
    same(
        "as stored",
        stored(&accounts, "p").await?,
        key.numbered(number),
    )?;
    for (n, scopes) in (0..=15).filter_map(Scopes::from_stored).enumerate() {
        let prefix = format!("scopes{n}");
        let key = NewApiKey {
            scopes,
            ..api_key(&prefix, 1, &prefix)
        };
        add(&accounts, &key).await?;
        same("scopes", stored(&accounts, &prefix).await?.scopes, scopes)?;
    }
    Ok(())
}

pub async fn texts_of_an_api_key_are_kept_verbatim(accounts: Port) -> Result<()> {
    for text in HOSTILE_TEXTS {
        let key = api_key(text, 1, text);
        let number = add(&accounts, &key).await?;
        same(text, stored(&accounts, text).await?, key.numbered(number))?;
    }
    Ok(())
}

pub async fn numbers_of_api_keys_grow(accounts: Port) -> Result<()> {
    let first = add(&accounts, &api_key("a", 1, "a")).await?;
    let second = add(&accounts, &api_key("b", 2, "b")).await?;
    is_refused(&accounts, &api_key("b", 2, "c"), "the prefix is taken").await?;
    revoke(&accounts, "b", NOW).await?;
    let third = add(&accounts, &api_key("c", 1, "c")).await?;
    ensure!(
        ApiKeyNumber(0) < first && first < second && second < third,
        "{first:?}, {second:?}, {third:?}"
    );
    Ok(())
}

pub async fn a_prefix_is_taken_once(accounts: Port) -> Result<()> {
    let first = api_key("p", 1, "laptop");
    add(&accounts, &first).await?;
    is_refused(&accounts, &first, "called twice").await?;
    let other = api_key("p", 2, "server");
    is_refused(&accounts, &other, "the prefix is taken").await?;
    ensure!(revoke(&accounts, "p", NOW).await?, "revoked");
    is_refused(&accounts, &other, "the prefix stays taken").await?;
    same("keys", accounts.api_keys(None).await?.len(), 1)
}

pub async fn a_user_has_one_key_in_force_of_a_name(accounts: Port) -> Result<()> {
    let made_at = |prefix, at| NewApiKey {
        created_at: at,
        ..api_key(prefix, 1, "x")
    };
    let expiring = NewApiKey {
        expires_at: Some(later(10)),
        ..api_key("p1", 1, "x")
    };
    add(&accounts, &expiring).await?;
    is_refused(&accounts, &api_key("p2", 1, "x"), "the name is taken").await?;
    add(&accounts, &api_key("p3", 2, "x")).await?;
    add(&accounts, &api_key("p4", 1, "X")).await?;
    let just_before = UnixMillis(later(10).0 - 1);
    is_refused(&accounts, &made_at("p5", just_before), "not expired yet").await?;
    add(&accounts, &made_at("p5", later(10))).await?;
    ensure!(revoke(&accounts, "p5", later(20)).await?, "revoked");
    let just_before = UnixMillis(later(20).0 - 1);
    is_refused(&accounts, &made_at("p6", just_before), "not ended yet").await?;
    add(&accounts, &made_at("p6", later(20))).await?;
    same("keys", accounts.api_keys(None).await?.len(), 5)
}

pub async fn api_keys_come_by_number_revoked_ones_too(accounts: Port) -> Result<()> {
    let aged = |prefix, owner, at| NewApiKey {
        created_at: at,
        ..api_key(prefix, owner, prefix)
    };
    let mut all = Vec::new();
    for key in [aged("c", 1, later(2)), aged("a", 2, NOW), aged("b", 1, NOW)] {
        let number = add(&accounts, &key).await?;
        all.push(key.numbered(number));
    }
    ensure!(revoke(&accounts, "c", later(9)).await?, "revoked");
    all[0].revoked_at = Some(later(9));
    let of = |user: u64| accounts.api_keys(Some(OwnerId(user)));
    same("of all", accounts.api_keys(None).await?, all.clone())?;
    let second = all.remove(1);
    same("of one", of(1).await?, all)?;
    same("of the other", of(2).await?, vec![second])?;
    same("of nobody", of(3).await?, vec![])
}

pub async fn an_api_key_is_revoked_once(accounts: Port) -> Result<()> {
    ensure!(!revoke(&accounts, "p", NOW).await?, "absent");
    add(&accounts, &api_key("p", 1, "x")).await?;
    let other = api_key("q", 1, "y");
    let number = add(&accounts, &other).await?;
    ensure!(revoke(&accounts, "p", later(1)).await?, "revoked");
    for at in [later(1), later(2)] {
        ensure!(!revoke(&accounts, "p", at).await?, "called twice");
    }
    let revoked_at = stored(&accounts, "p").await?.revoked_at;
    same("the first instant stays", revoked_at, Some(later(1)))?;
    let other = other.numbered(number);
    same("the other key", stored(&accounts, "q").await?, other)
}

pub async fn a_later_end_can_be_moved_forward_only(accounts: Port) -> Result<()> {
    let expired = NewApiKey {
        expires_at: Some(NOW),
        ..api_key("p", 1, "x")
    };
    add(&accounts, &expired).await?;
    for (at, moves) in [
        (later(60), true),
        (later(90), false),
        (later(1), true),
        (later(2), false),
    ] {
        let moved = revoke(&accounts, "p", at).await?;
        same(&format!("to {at}"), moved, moves)?;
    }
    let revoked_at = stored(&accounts, "p").await?.revoked_at;
    same("the earliest instant", revoked_at, Some(later(1)))
}

pub async fn a_rotation_replaces_the_key(accounts: Port) -> Result<()> {
    let old = NewApiKey {
        expires_at: Some(later(99)),
        ..api_key("old", 1, "laptop")
    };
    let old = old.numbered(add(&accounts, &old).await?);
    let successor = NewApiKey {
        scopes: Scopes::NONE.with(Scope::Read),
        created_at: later(1),
        ..api_key("new", 1, "whatever")
    };
    let rotated = accounts
        .rotate_api_key("old", "laptop (old)", later(60), &successor)
        .await?;
    let number = rotated.context("the rotation was refused")?;
    ensure!(number > old.number, "{number:?} after {:?}", old.number);
    let want_old = ApiKey {
        name: "laptop (old)".into(),
        revoked_at: Some(later(60)),
        ..old
    };
    let want_new = ApiKey {
        name: "laptop".into(),
        ..successor.numbered(number)
    };
    let want = vec![want_old, want_new];
    same("keys", accounts.api_keys(None).await?, want)
}

pub async fn a_rotated_key_stays_in_force_until_its_end(accounts: Port) -> Result<()> {
    add(&accounts, &api_key("old", 1, "x")).await?;
    let rotated = accounts
        .rotate_api_key("old", "x (old)", later(60), &api_key("new", 1, "x"))
        .await?;
    ensure!(rotated.is_some(), "rotated");
    let old = stored(&accounts, "old").await?;
    ensure!(old.is_in_force(UnixMillis(later(60).0 - 1)), "the overlap");
    ensure!(!old.is_in_force(later(60)), "its end");
    is_refused(&accounts, &api_key("p", 1, "x"), "the successor's name").await?;
    is_refused(&accounts, &api_key("p", 1, "x (old)"), "the retired name").await?;
    ensure!(revoke(&accounts, "old", NOW).await?, "ended at once");
    Ok(())
}

pub async fn a_rotation_that_is_refused_changes_nothing(accounts: Port) -> Result<()> {
    add(&accounts, &api_key("old", 1, "x")).await?;
    add(&accounts, &api_key("other", 2, "y")).await?;
    add(&accounts, &api_key("revoked", 1, "z")).await?;
    ensure!(revoke(&accounts, "revoked", later(9)).await?, "revoked");
    let before = accounts.api_keys(None).await?;
    for (prefix, successor, why) in [
        ("absent", api_key("new", 1, "x"), "absent"),
        ("revoked", api_key("new", 1, "z"), "revoked for later"),
        ("old", api_key("other", 1, "x"), "the prefix is taken"),
        ("old", api_key("old", 1, "x"), "the prefix is its own"),
        ("other", api_key("new", 1, "y"), "somebody else's"),
    ] {
        let got = accounts
            .rotate_api_key(prefix, "retired", NOW, &successor)
            .await?;
        same(why, got, None)?;
        same(why, accounts.api_keys(None).await?, before.clone())?;
    }
    same("no successor", accounts.api_key("new").await?, None)
}

pub async fn a_key_is_rotated_once(accounts: Port) -> Result<()> {
    add(&accounts, &api_key("k0", 1, "x")).await?;
    let rotate = async |from: &str, to: &str| {
        let successor = api_key(to, 1, "x");
        let rotated = accounts
            .rotate_api_key(from, "retired", later(60), &successor)
            .await?;
        anyhow::Ok(rotated.is_some())
    };
    ensure!(rotate("k0", "k1").await?, "rotated");
    ensure!(!rotate("k0", "k2").await?, "called twice");
    ensure!(rotate("k1", "k2").await?, "its successor");
    same("the name", &*stored(&accounts, "k2").await?.name, "x")?;
    same("keys", accounts.api_keys(None).await?.len(), 3)
}

pub async fn an_expired_key_gives_way_to_the_one_with_its_name(accounts: Port) -> Result<()> {
    let old = NewApiKey {
        expires_at: Some(later(1)),
        ..api_key("old", 1, "x")
    };
    add(&accounts, &old).await?;
    let made_later = |prefix| NewApiKey {
        created_at: later(1),
        ..api_key(prefix, 1, "x")
    };
    add(&accounts, &made_later("next")).await?;
    let before = accounts.api_keys(None).await?;
    let got = accounts
        .rotate_api_key("old", "retired", later(9), &made_later("new"))
        .await?;
    same("another key has the name", got, None)?;
    same("unchanged", accounts.api_keys(None).await?, before)?;
    ensure!(revoke(&accounts, "next", later(1)).await?, "revoked");
    let got = accounts
        .rotate_api_key("old", "retired", later(9), &made_later("new"))
        .await?;
    ensure!(got.is_some(), "the name is free again");
    Ok(())
}

pub async fn the_use_of_api_keys_is_noted(accounts: Port) -> Result<()> {
    let keys = ["a", "b", "c"].map(|prefix| api_key(prefix, 1, prefix));
    for key in &keys {
        add(&accounts, key).await?;
    }
    let touch = async |used: &[(&str, UnixMillis)]| {
        let used: Vec<_> = used.iter().map(|(key, at)| ((*key).into(), *at)).collect();
        accounts.touch_api_keys(&used).await
    };
    let last_used = async || {
        let keys = accounts.api_keys(None).await?;
        anyhow::Ok(keys.iter().map(|key| key.last_used_at).collect::<Vec<_>>())
    };
    touch(&[]).await?;
    same("never", last_used().await?, vec![None, None, None])?;
    touch(&[("a", later(5)), ("unknown", NOW), ("b", UnixMillis(-1))]).await?;
    let want = vec![Some(later(5)), Some(UnixMillis(-1)), None];
    same("noted", last_used().await?, want.clone())?;
    touch(&[("a", later(4))]).await?;
    same("older", last_used().await?, want.clone())?;
    touch(&[("a", later(5))]).await?;
    same("called twice", last_used().await?, want)?;
    touch(&[("c", later(7)), ("a", later(6)), ("c", later(6))]).await?;
    let want = vec![Some(later(6)), Some(UnixMillis(-1)), Some(later(7))];
    same("the latest of each", last_used().await?, want)
}

pub async fn limits_on_redirections_are_listed(accounts: Port) -> Result<()> {
    let none = RedirectionLimits::default();
    with_users(&accounts).await?;
    same("nobody", accounts.redirection_limits().await?, none)?;
    let limited = |amount| Allowance {
        creations: None,
        redirections: Some(QuotaRule { amount, ..LIMIT }),
    };
    let creations_only = Allowance {
        creations: Some(LIMIT),
        redirections: None,
    };
    for (id, allowance) in [(9, limited(9)), (4, limited(0)), (5, creations_only)] {
        let user = User {
            allowance,
            ..user(id, &format!("{id}@example.com"))
        };
        ensure!(accounts.add_user(&user).await?, "user {id}");
    }
    let mut numbers = Vec::new();
    for (prefix, allowance) in [
        ("a", limited(3)),
        ("b", creations_only),
        ("revoked", limited(5)),
        ("c", limited(6)),
    ] {
        let key = NewApiKey {
            allowance,
            ..api_key(prefix, 1, prefix)
        };
        numbers.push(add(&accounts, &key).await?);
    }
    ensure!(revoke(&accounts, "revoked", later(9)).await?, "revoked");
    let rule = |amount| QuotaRule { amount, ..LIMIT };
    let want = RedirectionLimits {
        users: vec![(OwnerId(4), rule(0)), (OwnerId(9), rule(9))],
        keys: vec![
            (numbers[0], rule(3)),
            (numbers[2], rule(5)),
            (numbers[3], rule(6)),
        ],
    };
    same("limits", accounts.redirection_limits().await?, want)?;
    let freed = User {
        updated_at: later(1),
        ..user(4, "4@example.com")
    };
    accounts.update_user(&freed, NOW).await?;
    let users = accounts.redirection_limits().await?.users;
    same(
        "a limit that was lifted",
        users,
        vec![(OwnerId(9), rule(9))],
    )
}

pub async fn one_racer_adds_the_api_key(accounts: Port) -> Result<()> {
    let added = race(RACERS, |n| {
        let accounts = Arc::clone(&accounts);
        let key = api_key("p", n as u64, &format!("name {n}"));
        async move { Ok(accounts.add_api_key(&key).await?.is_some()) }
    })
    .await?;
    same("winners", winners(&added), 1)?;
    same("keys", accounts.api_keys(None).await?.len(), 1)
}

pub async fn one_racer_gets_the_name(accounts: Port) -> Result<()> {
    let added = race(RACERS, |n| {
        let accounts = Arc::clone(&accounts);
        let key = api_key(&format!("p{n}"), 1, "x");
        async move { Ok(accounts.add_api_key(&key).await?.is_some()) }
    })
    .await?;
    same("winners", winners(&added), 1)?;
    same("keys", accounts.api_keys(None).await?.len(), 1)
}

pub async fn one_racer_revokes_the_api_key(accounts: Port) -> Result<()> {
    add(&accounts, &api_key("p", 1, "x")).await?;
    let revoked = race(RACERS, |_| {
        let accounts = Arc::clone(&accounts);
        async move {
            let which = KeysToRevoke::Prefix("p");
            Ok(!accounts.revoke_api_keys(which, NOW).await?.is_empty())
        }
    })
    .await?;
    same("winners", winners(&revoked), 1)
}

pub async fn one_racer_rotates_the_api_key(accounts: Port) -> Result<()> {
    add(&accounts, &api_key("old", 1, "x")).await?;
    let rotated = race(RACERS, |n| {
        let accounts = Arc::clone(&accounts);
        let successor = api_key(&format!("new{n}"), 1, "x");
        async move {
            let rotated = accounts.rotate_api_key("old", "retired", later(60), &successor);
            Ok(rotated.await?.is_some())
        }
    })
    .await?;
    same("winners", winners(&rotated), 1)?;
    same("keys", accounts.api_keys(None).await?.len(), 2)
}

pub async fn api_keys_survive_reopening(
    folder: &Path,
    open: impl AsyncFn(&Path) -> Port,
) -> Result<()> {
    let accounts = open(folder).await;
    for (prefix, name) in [("p", "x"), ("q", "y"), ("old", "z")] {
        add(&accounts, &api_key(prefix, 1, name)).await?;
    }
    ensure!(revoke(&accounts, "q", later(1)).await?, "revoked");
    let successor = api_key("new", 1, "z");
    let rotated = accounts
        .rotate_api_key("old", "z (old)", later(9), &successor)
        .await?;
    accounts.touch_api_keys(&[("p".into(), later(3))]).await?;
    let keys = accounts.api_keys(None).await?;
    drop(accounts);
    let accounts = open(folder).await;
    same("keys", accounts.api_keys(None).await?, keys)?;
    is_refused(&accounts, &api_key("q", 1, "new"), "prefixes stay taken").await?;
    let next = accounts.add_api_key(&api_key("next", 1, "next")).await?;
    ensure!(next > rotated, "{next:?} after {rotated:?}");
    Ok(())
}
