//! Data files of earlier versions, opened by this one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use curt_core::account::{ApiKeyNumber, Role, User};
use curt_core::ports::LedgerForm;
use curt_core::ports::{ApiKey, ListQuery};
use curt_core::{OwnerId, UnixMillis};
use curt_sqlite::{Sqlite, SqliteSettings};
use curt_testkit::sample::{NOW, OWNER, api_key, batch, id, key, later, link, request, user};
use rusqlite::{Connection, params};
use tempfile::TempDir;

const FIRST: &str = include_str!("../../migrations/0001_first.sql");
/// "curt" in ASCII.
const APPLICATION_ID: i32 = 0x6375_7274;

/// A file as the first version wrote it, without rows.
fn first_version(folder: &TempDir) -> (PathBuf, Connection) {
    let path = folder.path().join("curt.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(FIRST).unwrap();
    for (pragma, value) in [("application_id", APPLICATION_ID), ("user_version", 1)] {
        connection.pragma_update(None, pragma, value).unwrap();
    }
    (path, connection)
}

fn add_owner(connection: &Connection, id: u64, name: &str) {
    connection
        .execute(
            "INSERT INTO owners (id, name, created_at) VALUES (?1, ?2, ?3)",
            params![id.cast_signed(), name, NOW.0],
        )
        .unwrap();
}

fn add_api_key(connection: &Connection, prefix: &str, revoked_at: Option<UnixMillis>) {
    connection
        .execute(
            "INSERT INTO api_keys (prefix, secret_hash, owner, name, created_at, expires_at, revoked_at) \
             VALUES (?1, ?2, 7, 'laptop', ?3, ?4, ?5)",
            params![
                prefix,
                [0xA5_u8; 32],
                NOW.0,
                later(99).0,
                revoked_at.map(|at| at.0)
            ],
        )
        .unwrap();
}

fn add_link(connection: &Connection, key: &str) {
    connection
        .execute(
            "INSERT INTO links (domain, key, target, owner, state, origin, generation, version, created_at, \
             visibility, was_permanent, forward_query) VALUES (0, ?1, ?2, ?3, 0, 1, 1, 1, ?4, 0, 0, 0)",
            params![
                key,
                format!("https://example.com/{key}"),
                OWNER.0.cast_signed(),
                NOW.0
            ],
        )
        .unwrap();
}

fn open(path: &Path) -> Arc<Sqlite> {
    Sqlite::open(path, SqliteSettings::default()).unwrap()
}

/// What has become of an owner.
fn administrator(id: u64, name: &str, email: &str) -> User {
    User {
        first_name: name.into(),
        last_name: "".into(),
        role: Role::Admin,
        ..user(id, email)
    }
}

#[tokio::test]
async fn owners_become_users_who_may_do_everything() {
    let folder = tempfile::tempdir().unwrap();
    let (path, connection) = first_version(&folder);
    add_owner(&connection, 7, "Ann Example");
    add_owner(&connection, u64::MAX >> 1, "o'Brien");
    drop(connection);

    let db = open(&path);
    let accounts = db.accounts();
    let want = vec![
        administrator(7, "Ann Example", "ann example@localhost"),
        administrator(u64::MAX >> 1, "o'Brien", "o'brien@localhost"),
    ];
    assert_eq!(accounts.users(None, 9).await.unwrap(), want);
    assert!(!accounts.anybody_can_sign_in().await.unwrap());
    db.close().await;
}

/// Names differed by case, emails do not; and no name can be chosen so that it gives the email of another.
#[tokio::test]
async fn owners_with_like_names_get_emails_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (path, connection) = first_version(&folder);
    let names = ["ann", "Ann", "ANN", "ann@2.localhost", "ann@localhost"];
    for (id, name) in (1..).zip(names) {
        add_owner(&connection, id, name);
    }
    drop(connection);

    let db = open(&path);
    let users = db.accounts().users(None, 9).await.unwrap();
    let emails: Vec<&str> = users.iter().map(|user| &*user.email).collect();
    let want = [
        "ann@localhost",
        "ann@2.localhost",
        "ann@3.localhost",
        "ann@2.localhost@localhost",
        "ann@localhost@localhost",
    ];
    assert_eq!(emails, want);
    db.close().await;
}

#[tokio::test]
async fn api_keys_keep_working_with_every_scope() {
    let folder = tempfile::tempdir().unwrap();
    let (path, connection) = first_version(&folder);
    add_owner(&connection, 7, "Ann");
    add_api_key(&connection, "revoked", Some(later(3)));
    add_api_key(&connection, "valid", None);
    drop(connection);

    let db = open(&path);
    let accounts = db.accounts();
    let want = |number, prefix| ApiKey {
        expires_at: Some(later(99)),
        ..api_key(prefix, 7, "laptop").numbered(ApiKeyNumber(number))
    };
    let revoked = ApiKey {
        revoked_at: Some(later(3)),
        ..want(1, "revoked")
    };
    let got = accounts.api_keys(Some(OwnerId(7))).await.unwrap();
    assert_eq!(got, vec![revoked, want(2, "valid")]);
    let same_name = accounts.add_api_key(&api_key("new", 7, "laptop")).await;
    assert_eq!(same_name.unwrap(), None, "the name is still taken");
    let next = accounts.add_api_key(&api_key("new", 7, "phone")).await;
    assert_eq!(next.unwrap(), Some(ApiKeyNumber(3)));
    db.close().await;
}

#[tokio::test]
async fn links_stay_and_new_ones_join_them() {
    let folder = tempfile::tempdir().unwrap();
    let (path, connection) = first_version(&folder);
    for key in ["a", "b"] {
        add_link(&connection, key);
    }
    drop(connection);

    let db = open(&path);
    let store = db.links();
    for key in ["a", "b"] {
        assert_eq!(store.get(&id(key)).await.unwrap(), Some(link(key)));
    }
    let edited = store.update(link("a"), link("a").revision).await;
    assert!(edited.is_ok(), "{edited:?}");
    let mut made = link("c");
    made.made_with = Some(ApiKeyNumber(2));
    store.insert(request(vec![made])).await.unwrap();
    let query = ListQuery {
        owner: Some(OWNER),
        limit: 9,
        ..ListQuery::default()
    };
    let listed = store.list(&query).await.unwrap().links;
    let makers: Vec<_> = listed.iter().map(|link| link.made_with).collect();
    assert_eq!(makers, [Some(ApiKeyNumber(2)), None, None], "newest first");
    db.close().await;
}

/// Unused, used and open keys stay what they were.
#[tokio::test]
async fn minted_keys_stay_where_they_are_k2() {
    let folder = tempfile::tempdir().unwrap();
    let (path, connection) = first_version(&folder);
    connection
        .execute_batch(
            "INSERT INTO keys (slot, key, status) VALUES (1, 'free', 0), (2, 'used', 1), (3, 'open', 2), (4, 'lent', 2);
             INSERT INTO key_batches (name, taken_at, keys) VALUES ('b', 0, 'open' || char(10) || 'lent');
             INSERT INTO counters VALUES ('keys.minted', 4), ('keys.free', 1), ('keys.open', 2);",
        )
        .unwrap();
    drop(connection);

    let db = open(&path);
    let ledger = db.ledger(LedgerForm::Status).unwrap();
    let returned = ledger.give_back(&batch("b"), &[key("lent")]).await;
    assert_eq!(returned.unwrap(), 1);
    let mut taken = ledger.take(&batch("c"), 9, NOW).await.unwrap();
    taken.sort();
    assert_eq!(taken, [key("free"), key("lent")]);
    let freed = ledger
        .recycle(&[key("used"), key("open"), key("free")])
        .await;
    assert_eq!(freed.unwrap(), 2, "the last one is open");
    let counts = ledger.counts().await.unwrap();
    assert_eq!((counts.minted, counts.free, counts.open), (4, 2, 2));
    db.close().await;
}

/// The old tables are gone, and nothing is left half way.
#[tokio::test]
async fn nothing_of_the_old_tables_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let (path, connection) = first_version(&folder);
    add_owner(&connection, 7, "Ann");
    add_api_key(&connection, "valid", None);
    drop(connection);
    let steps = Sqlite::migrate(&path).unwrap();
    let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
    assert_eq!(
        names,
        [
            "accounts",
            "link clicks",
            "keys",
            "API key parents",
            "key generations",
        ]
    );

    let connection = Connection::open(&path).unwrap();
    let text = |sql: &str| -> String { connection.query_row(sql, [], |row| row.get(0)).unwrap() };
    assert_eq!(text("PRAGMA integrity_check"), "ok");
    let tables = text(
        "SELECT group_concat(name, ' ') FROM (SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name)",
    );
    assert_eq!(
        tables,
        "api_keys audit counters cursors idempotency invites key_batches key_generations keys keys_used link_clicks link_tags \
         links permissions sessions sqlite_sequence users"
    );
}
