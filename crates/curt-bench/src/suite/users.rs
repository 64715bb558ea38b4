//! An installation that people use: users, API keys, sessions, limits on the clicks of their links, a long blocklist.
//! None of it concerns the links that are followed, and the comparison shows what that costs them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use curt_core::ports::{Accounts, NewApiKey, QuotaRule, Session};
use curt_core::{Allowance, Clock as _, OwnerId, Role, Scopes, SystemClock, UnixMillis, User};
use curt_sqlite::{Sqlite, SqliteSettings, Synchronous};

const USERS: u64 = 1_000;
/// The owner of the prepared links is 1.
const FIRST_USER: u64 = 1_000_000;
const BLOCKED_HOSTS: u32 = 100_000;
const ALLOWED: QuotaRule = QuotaRule {
    amount: 1_000,
    period: Duration::from_secs(3_600),
};

/// Adds people to the data file, each with an API key, a session, and limits for the user and for the key.
pub(super) fn move_in(database: &Path) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // As for the links: the file is thrown away afterwards.
    let settings = SqliteSettings {
        synchronous: Synchronous::Normal,
        ..SqliteSettings::default()
    };
    runtime.block_on(async {
        let database = Sqlite::open(database, settings)?;
        let moved = add_all(&*database.accounts()).await;
        database.close().await;
        moved
    })
}

async fn add_all(accounts: &dyn Accounts) -> anyhow::Result<()> {
    let now = SystemClock.now();
    for number in 0..USERS {
        let user = user(number, now);
        let added = accounts.add_user(&user).await?
            && accounts
                .add_api_key(&api_key(number, &user))
                .await?
                .is_some()
            && accounts.add_session(&session(number, &user)).await?;
        ensure!(added, "{} is there already", user.email);
    }
    Ok(())
}

fn user(number: u64, now: UnixMillis) -> User {
    User {
        id: OwnerId(FIRST_USER + number),
        first_name: "Ada".into(),
        middle_name: None,
        last_name: "Lovelace".into(),
        email: format!("ada-{number}@example.com").into(),
        password_hash: None,
        role: Role::Member,
        disabled_at: None,
        allowance: allowance(),
        created_at: now,
        updated_at: now,
    }
}

fn allowance() -> Allowance {
    Allowance {
        creations: Some(ALLOWED),
        redirections: Some(ALLOWED),
    }
}

fn api_key(number: u64, user: &User) -> NewApiKey {
    NewApiKey {
        prefix: format!("k{number:07}").into(),
        secret_hash: [7; 32],
        user: user.id,
        name: "laptop".into(),
        scopes: Scopes::ALL,
        allowance: allowance(),
        created_at: user.created_at,
        expires_at: None,
        parent: None,
        bucket: None,
    }
}

fn session(number: u64, user: &User) -> Session {
    Session {
        id: format!("s{number:015}").into(),
        secret_hash: [7; 32],
        user: user.id,
        created_at: user.created_at,
        used_at: user.created_at,
        expires_at: user.created_at.plus(Duration::from_secs(24 * 3_600)),
        agent: "Mozilla/5.0".into(),
    }
}

/// Writes a long blocklist into the folder and returns the settings of a server that people use.
pub(super) fn settings(folder: &Path) -> anyhow::Result<Vec<String>> {
    let list = blocklist(folder)?;
    Ok(vec![
        format!("links.blocklist={}", list.display()),
        "limits.creations_per_key=1000/1h".to_owned(),
        "limits.creations_per_user=1000/1h".to_owned(),
        "accounts.sign_up=open".to_owned(),
    ])
}

fn blocklist(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut text = String::new();
    for number in 0..BLOCKED_HOSTS {
        writeln!(text, "evil-{number}.example")?;
    }
    let file = fs::canonicalize(folder)?.join("blocked");
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_and_their_limits_are_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("people.db");
        Sqlite::migrate(&file).unwrap();
        move_in(&file).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let limits = runtime.block_on(async {
            let database = Sqlite::open(&file, SqliteSettings::default()).unwrap();
            let limits = database.accounts().redirection_limits().await.unwrap();
            database.close().await;
            limits
        });
        assert_eq!((limits.users.len(), limits.keys.len()), (1_000, 1_000));
        assert!(limits.users.iter().all(|(user, _)| *user != OwnerId(1)));
        let settings = settings(folder.path()).unwrap();
        let list = settings[0].strip_prefix("links.blocklist=").unwrap();
        assert_eq!(fs::read_to_string(list).unwrap().lines().count(), 100_000);
    }
}
