use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::AuditEntry;
use curt_core::{OwnerId, UnixMillis};

use super::Port;
use crate::conformance::{HOSTILE_TEXTS, RACERS, race, same};
use crate::sample::{NOW, audit_entry, later};

async fn subjects(accounts: &Port, before: Option<u64>, limit: usize) -> Result<Vec<Box<str>>> {
    let page = accounts.audit(before, limit).await?;
    Ok(page.into_iter().map(|(_, entry)| entry.subject).collect())
}

fn texts(subjects: &[&str]) -> Vec<Box<str>> {
    subjects.iter().map(|subject| (*subject).into()).collect()
}

/// The order is that of coming, whatever the clock said.
pub async fn actions_come_newest_first(accounts: Port) -> Result<()> {
    same("nothing", accounts.audit(None, 9).await?, vec![])?;
    for (subject, at) in [("a", later(1)), ("b", NOW), ("c", later(2))] {
        let entry = AuditEntry {
            at,
            ..audit_entry("tried", subject)
        };
        accounts.record(&entry).await?;
    }
    let got = subjects(&accounts, None, 9).await?;
    same("newest first", got, texts(&["c", "b", "a"]))
}

pub async fn actions_come_in_pages(accounts: Port) -> Result<()> {
    for subject in ["a", "b", "c", "d"] {
        accounts.record(&audit_entry("tried", subject)).await?;
    }
    let first = accounts.audit(None, 3).await?;
    let numbers: Vec<u64> = first.iter().map(|(number, _)| *number).collect();
    same("a page", numbers.len(), 3)?;
    ensure!(numbers.is_sorted_by(|a, b| a > b), "numbers: {numbers:?}");
    let last = numbers.last().copied();
    same("next", subjects(&accounts, last, 3).await?, texts(&["a"]))?;
    let before = |number| subjects(&accounts, Some(number), 9);
    same("before the newest", before(numbers[0]).await?.len(), 3)?;
    same("before all", before(0).await?, vec![])?;
    same("before none", before(u64::MAX).await?.len(), 4)?;
    same(
        "none asked for",
        subjects(&accounts, None, 0).await?,
        vec![],
    )
}

pub async fn every_field_of_an_action_is_kept(accounts: Port) -> Result<()> {
    let full = AuditEntry {
        at: UnixMillis(-1),
        actor: Some(OwnerId(u64::MAX >> 1)),
        action: "tried".into(),
        subject: "ann@example.com".into(),
        address: Some("2001:db8::1".into()),
    };
    let anonymous = AuditEntry {
        actor: None,
        ..audit_entry("", "")
    };
    let hostile = HOSTILE_TEXTS.map(|text| AuditEntry {
        action: text.into(),
        subject: text.into(),
        address: Some(text.into()),
        ..audit_entry("", "")
    });
    let entries = [full, anonymous].into_iter().chain(hostile);
    for entry in entries {
        accounts.record(&entry).await?;
        let newest = accounts.audit(None, 1).await?.pop();
        same("newest", newest.map(|(_, entry)| entry), Some(entry))?;
    }
    Ok(())
}

pub async fn an_action_that_is_recorded_twice_is_there_twice(accounts: Port) -> Result<()> {
    for _ in 0..2 {
        accounts.record(&audit_entry("tried", "a")).await?;
    }
    let got = subjects(&accounts, None, 9).await?;
    same("both", got, texts(&["a", "a"]))
}

pub async fn no_racing_action_is_lost(accounts: Port) -> Result<()> {
    race(RACERS, |n| {
        let accounts = Arc::clone(&accounts);
        let entry = audit_entry("tried", &n.to_string());
        async move { accounts.record(&entry).await }
    })
    .await?;
    let all = accounts.audit(None, RACERS * 2).await?;
    let numbers: HashSet<u64> = all.iter().map(|(number, _)| *number).collect();
    let subjects: HashSet<&str> = all.iter().map(|(_, entry)| &*entry.subject).collect();
    same("numbers", numbers.len(), RACERS)?;
    same("actions", subjects.len(), RACERS)
}

pub async fn audit_survive_reopening(
    folder: &Path,
    open: impl AsyncFn(&Path) -> Port,
) -> Result<()> {
    let accounts = open(folder).await;
    for subject in ["a", "b"] {
        accounts.record(&audit_entry("tried", subject)).await?;
    }
    let before = accounts.audit(None, 9).await?;
    drop(accounts);
    let accounts = open(folder).await;
    same("actions", accounts.audit(None, 9).await?, before)?;
    accounts.record(&audit_entry("tried", "c")).await?;
    let got = subjects(&accounts, None, 9).await?;
    same("and then", got, texts(&["c", "b", "a"]))
}
