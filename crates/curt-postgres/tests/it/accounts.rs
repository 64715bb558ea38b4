//! The accounts of PostgreSQL on a real server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use curt_core::OwnerId;
use curt_core::ports::{Accounts, KeysToRevoke};
use curt_postgres::{ACCOUNTS, Postgres, PostgresSettings};
use curt_testkit::conformance::transfer::stores::AccountCopyPorts;
use curt_testkit::engines::postgres::shared;
use curt_testkit::need;
use curt_testkit::sample::{NOW, api_key, audit_entry, later, user};
use tokio::task::JoinSet;

use crate::prepared::prepared;

fn open(url: &str) -> Arc<dyn Accounts> {
    open_database(url).accounts()
}

fn open_database(url: &str) -> Postgres {
    let settings = PostgresSettings {
        // The machine may be busy with other tests.
        connect_timeout: Duration::from_secs(30),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(30))
    };
    Postgres::open(url, &settings).unwrap()
}

curt_testkit::accounts_tests!({
    let [database] = prepared(&need!(shared()), &ACCOUNTS);
    let accounts = open(&database.url());
    (database, accounts)
});
curt_testkit::account_transfer_tests!({
    let databases = prepared::<2>(&need!(shared()), &ACCOUNTS);
    let [from, to] = databases
        .each_ref()
        .map(|database| open_database(&database.url()));
    let ports = AccountCopyPorts {
        from: from.accounts(),
        from_transfer: from.account_transfer(),
        to: to.accounts(),
        to_transfer: to.account_transfer(),
    };
    (databases, ports)
});
curt_testkit::durable_accounts_tests!({
    let database = need!(shared()).database("accounts").unwrap();
    let url = database.url();
    (database, "", async move |_: &Path| open(&url))
});

#[tokio::test(flavor = "multi_thread")]
async fn what_one_process_takes_away_is_gone_for_the_other() {
    let server = need!(shared());
    let database = server.database("processes").unwrap();
    let (one, other) = (open(&database.url()), open(&database.url()));
    assert!(one.add_user(&user(1, "ann@example.com")).await.unwrap());
    let taken = user(2, "ann@example.com");
    assert!(!other.add_user(&taken).await.unwrap(), "the email is taken");
    one.add_api_key(&api_key("p", 1, "x")).await.unwrap();
    assert!(other.api_key("p").await.unwrap().is_some());
    let ended = other.revoke_api_keys(KeysToRevoke::Prefix("p"), NOW).await;
    assert_eq!(ended.unwrap(), ["p"].map(Box::<str>::from));
    let seen = one.api_key("p").await.unwrap().unwrap();
    assert!(!seen.is_in_force(NOW));
}

/// Processes note what was used at the same moments, in whatever order they remember it.
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_note_the_same_keys_do_not_wait_in_a_circle() {
    const KEYS: usize = 50;
    let server = need!(shared());
    let database = server.database("noting").unwrap();
    let accounts = open(&database.url());
    for n in 0..KEYS {
        let name = format!("k{n}");
        accounts
            .add_api_key(&api_key(&name, 1, &name))
            .await
            .unwrap();
    }
    // So many more that the noted ones are looked up one by one, in the order in which they are named.
    let others = "insert into api_keys (prefix, secret_hash, user_id, name, scopes, created_at) \
        select 'other' || n, '', 2, n, 0, 0 from generate_series(1, 20000) n; analyze api_keys";
    database.sql(others).unwrap();
    let mut work = JoinSet::new();
    for n in 0..16 {
        let accounts = open(&database.url());
        work.spawn(async move {
            for round in 0..20 {
                let mut used: Vec<_> = (0..KEYS)
                    .map(|k| {
                        (
                            format!("k{}", (k + n as usize * 3) % KEYS).into(),
                            later(round * 16 + n),
                        )
                    })
                    .collect();
                if n % 2 == 0 {
                    used.reverse();
                }
                accounts.touch_api_keys(&used).await.unwrap();
            }
        });
    }
    work.join_all().await;
    for key in accounts.api_keys(Some(OwnerId(1))).await.unwrap() {
        assert_eq!(key.last_used_at, Some(later(319)), "{}", key.prefix);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_engine_cannot_hold_is_absent_and_still_logged() {
    let server = need!(shared());
    let database = server.database("nul").unwrap();
    let accounts = open(&database.url());
    let typed = "ann\0@example.com";
    assert_eq!(accounts.user_by_email(typed).await.unwrap(), None);
    accounts
        .record(&audit_entry("sign-in", typed))
        .await
        .unwrap();
    let log = accounts.audit(None, 1).await.unwrap();
    assert_eq!(&*log[0].1.subject, "ann\u{fffd}@example.com");
}
