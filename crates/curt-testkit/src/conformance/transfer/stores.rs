//! Clauses of copies of accounts and of clicks, from one database to another of the same engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use curt_core::account::{Allowance, Role, User};
use curt_core::ports::{
    AccountItem, Accounts, AuditEntry, ClickDatabase, ClickItem, ImportReport, Invite,
    KeysToRevoke, QuotaRule, Transfer, Transferred,
};
use curt_core::{ErrorKind, OwnerId, UnixMillis};

use super::samples::wrote;
use crate::conformance::clicks::agreement;
use crate::conformance::{HOSTILE_TEXTS, refused, same};
use crate::sample::{NOW, api_key, id, later, user};

/// Two accounts databases, both empty.
pub struct AccountCopyPorts {
    pub from: Arc<dyn Accounts>,
    pub from_transfer: Arc<dyn Transfer<AccountItem>>,
    pub to: Arc<dyn Accounts>,
    pub to_transfer: Arc<dyn Transfer<AccountItem>>,
}

/// Two clicks databases, both empty, and one that serves as the reference.
pub struct ClickCopyPorts {
    pub reference: Arc<dyn ClickDatabase>,
    pub from: Arc<dyn ClickDatabase>,
    pub from_transfer: Arc<dyn Transfer<ClickItem>>,
    pub to: Arc<dyn ClickDatabase>,
    pub to_transfer: Arc<dyn Transfer<ClickItem>>,
}

const USERS: u64 = 230;
const ENTRIES: u32 = 210;

/// Copies part by part, each twice, as a copy that is killed would.
async fn copy<Item: Transferred + std::fmt::Debug>(
    from: &dyn Transfer<Item>,
    to: &dyn Transfer<Item>,
) -> Result<Vec<Item>> {
    let (mut all, mut position) = (Vec::new(), None::<Box<str>>);
    loop {
        let part = from.export_all(position.as_deref()).await?;
        let items = part.items.len() as u64;
        same("imported", to.import_all(&part.items).await?, wrote(items))?;
        same("called twice", to.import_all(&part.items).await?, wrote(0))?;
        all.extend(part.items);
        match part.next {
            Some(next) => position = Some(next),
            None => return Ok(all),
        }
    }
}

async fn export<Item: Transferred>(from: &dyn Transfer<Item>) -> Result<Vec<Item>> {
    let (mut all, mut position) = (Vec::new(), None::<Box<str>>);
    loop {
        let part = from.export_all(position.as_deref()).await?;
        all.extend(part.items);
        match part.next {
            Some(next) => position = Some(next),
            None => return Ok(all),
        }
    }
}

fn by_name(items: Vec<AccountItem>) -> Result<BTreeMap<Box<str>, AccountItem>> {
    let count = items.len();
    let named: BTreeMap<_, _> = items.into_iter().map(|item| (item.name(), item)).collect();
    same("items that are there once", named.len(), count)?;
    Ok(named)
}

fn entry(number: i64) -> AuditEntry {
    AuditEntry {
        at: UnixMillis(NOW.0 + number),
        actor: (number % 2 == 0).then_some(OwnerId(7)),
        action: "sign_in".into(),
        subject: HOSTILE_TEXTS[usize::try_from(number).unwrap_or(0) % HOSTILE_TEXTS.len()].into(),
        address: (number % 3 == 0).then(|| "192.0.2.1".into()),
    }
}

fn full_user() -> User {
    let rule = |amount| QuotaRule {
        amount,
        period: Duration::from_secs(60),
    };
    User {
        middle_name: Some("M.".into()),
        password_hash: Some("$argon2id$v=19$sample".into()),
        role: Role::Admin,
        disabled_at: Some(later(3)),
        allowance: Allowance {
            creations: Some(rule(5)),
            redirections: Some(rule(6)),
        },
        updated_at: later(4),
        ..user(7_000_000_000_000_000_000, "full@example.com")
    }
}

fn invite(number: u8) -> Invite {
    Invite {
        secret_hash: [number; 32],
        role: Role::Member,
        made_by: OwnerId(7),
        created_at: NOW,
        expires_at: later(u64::from(number)),
    }
}

/// Users with keys, invitations, permissions and a log of more than a part.
pub async fn fill_accounts(accounts: &dyn Accounts) -> Result<()> {
    for number in 1..=USERS {
        accounts
            .add_user(&user(number, &format!("u{number}@example.com")))
            .await?;
    }
    accounts.add_user(&full_user()).await?;
    accounts.add_api_key(&api_key("one", 1, "first")).await?;
    let child = curt_core::ports::NewApiKey {
        parent: Some("one".into()),
        bucket: Some(curt_core::account::ApiKeyNumber(1)),
        ..api_key("two", 1, "child")
    };
    accounts.add_api_key(&child).await?;
    accounts.add_api_key(&api_key("gone", 2, "revoked")).await?;
    accounts
        .revoke_api_keys(KeysToRevoke::Prefix("gone"), later(9))
        .await?;
    accounts.touch_api_keys(&[("one".into(), later(8))]).await?;
    for number in 1..=3 {
        accounts.add_invite(&invite(number)).await?;
    }
    accounts.take_invite(&[2; 32], NOW).await?;
    for user in [9, 3, 5] {
        accounts
            .grant(OwnerId(user), &id("private"), 2, later(user))
            .await?;
    }
    accounts.grant(OwnerId(3), &id("other"), 1, NOW).await?;
    for number in 0..i64::from(ENTRIES) {
        accounts.record(&entry(number)).await?;
    }
    Ok(())
}

pub async fn a_copy_of_accounts_is_the_same(ports: AccountCopyPorts) -> Result<()> {
    let AccountCopyPorts { from, to, .. } = &ports;
    fill_accounts(&**from).await?;
    let copied = copy(&*ports.from_transfer, &*ports.to_transfer).await?;
    same("items", copied.len(), 231 + 3 + 2 + 4 + 210)?;
    let there = by_name(export(&*ports.to_transfer).await?)?;
    same("what is there", there, by_name(copied)?)?;
    same(
        "a user",
        to.user_by_email("full@example.com").await?,
        Some(full_user()),
    )?;
    same("keys", to.api_keys(None).await?, from.api_keys(None).await?)?;
    same(
        "an invitation",
        to.invite(&[1; 32], NOW).await?,
        Some(invite(1)),
    )?;
    same("one that was taken", to.invite(&[2; 32], NOW).await?, None)?;
    let permitted = to.permissions(&id("private"), 2, 9).await?;
    let users: Vec<u64> = permitted.iter().map(|one| one.user.0).collect();
    same("permissions, oldest first", users, vec![9, 3, 5])?;
    same(
        "the log",
        to.audit(None, 2_000).await?,
        from.audit(None, 2_000).await?,
    )
}

pub async fn what_comes_after_a_copy_of_accounts_is_newer(ports: AccountCopyPorts) -> Result<()> {
    let AccountCopyPorts { from, to, .. } = &ports;
    from.add_api_key(&api_key("one", 1, "first")).await?;
    from.add_api_key(&api_key("two", 1, "second")).await?;
    from.record(&entry(1)).await?;
    copy(&*ports.from_transfer, &*ports.to_transfer).await?;
    let next = to.add_api_key(&api_key("next", 1, "third")).await?;
    same("the next number", next.context("a new key")?.0, 3)?;
    let first = to.audit(None, 9).await?;
    to.record(&entry(2)).await?;
    let both = to.audit(None, 9).await?;
    ensure!(both.len() == 2 && both[1..] == first[..], "{both:?}");
    ensure!(both[0].0 > both[1].0, "{both:?}");
    Ok(())
}

pub async fn what_others_have_stays_with_them(ports: AccountCopyPorts) -> Result<()> {
    let AccountCopyPorts { from, to, .. } = &ports;
    let transfer = &ports.to_transfer;
    to.add_user(&user(1, "taken@example.com")).await?;
    to.add_api_key(&api_key("theirs", 1, "first")).await?;
    from.add_user(&user(2, "taken@example.com")).await?;
    from.add_user(&user(1, "older@example.com")).await?;
    from.add_api_key(&api_key("ours", 2, "first")).await?;
    let items = export(&*ports.from_transfer).await?;
    let report = transfer.import_all(&items).await?;
    let mut conflicts = report.conflicts.clone();
    conflicts.sort();
    let want = [
        "API key ours",
        "user older@example.com",
        "user taken@example.com",
    ];
    same("conflicts", conflicts, want.map(Into::into).to_vec())?;
    same(
        "the user",
        to.user(OwnerId(1)).await?,
        Some(user(1, "taken@example.com")),
    )?;
    let newer = User {
        updated_at: later(9),
        ..user(1, "newer@example.com")
    };
    let newer = [AccountItem::User(Box::new(newer))];
    same("a newer one", transfer.import_all(&newer).await?, wrote(1))?;
    let older = AccountItem::User(Box::new(user(1, "taken@example.com")));
    let outdated = ImportReport {
        outdated: 1,
        ..wrote(0)
    };
    same(
        "an older one",
        transfer.import_all(&[older]).await?,
        outdated,
    )?;
    for position in ["", "x", "u-", "kx", "\u{1f980}", "ax", "iz", "px"] {
        let part = transfer.export_all(Some(position)).await;
        refused(position, part, ErrorKind::Invalid)?;
    }
    Ok(())
}

/// A history on the source goes on at the copy as if nothing had happened, for every report (C-1).
pub async fn clicks_go_on_after_a_copy_c1(ports: ClickCopyPorts) -> Result<()> {
    for seed in 1..=2 {
        agreement(seed, 80, ports.reference.clone(), ports.from.clone()).await;
    }
    let copied = copy(&*ports.from_transfer, &*ports.to_transfer).await?;
    let kinds = copied.iter().fold([0; 4], |mut kinds, item| {
        kinds[match item {
            ClickItem::Run { .. } => 0,
            ClickItem::Block { .. } => 1,
            ClickItem::Salt { .. } => 2,
            ClickItem::Offset { .. } => 3,
        }] += 1;
        kinds
    });
    ensure!(
        kinds.iter().all(|kind| *kind > 0),
        "runs, blocks, salts, offsets: {kinds:?}"
    );
    for seed in 3..=5 {
        agreement(seed, 80, ports.reference.clone(), ports.to.clone()).await;
    }
    for position in ["", "x", "r1", "b1:2", "\u{1f980}", "z1"] {
        let part = ports.from_transfer.export_all(Some(position)).await;
        refused(position, part, ErrorKind::Invalid)?;
    }
    Ok(())
}
