//! A user is removed, and the process killed after every call to the link store: the same request finishes what it began.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use curt_accounts::{
    AccountError, AccountServices, AccountSettings, LimitSettings, Origin, UserRef,
};
use curt_core::clock::ManualClock;
use curt_core::ports::{ListQuery, SeededDatabase, Users};
use curt_core::{
    Alphabet, EffectiveState, ErrorKind, Link, LinkState, OwnerId, PortError, PortResult,
};
use curt_links::{
    LinkError, LinkMetrics, LinkOperations, LinkSettings, Links, LinksOfLeaver, ResolveMetrics,
    Resolver, ResolverSettings, UserRemovalError, Who,
};
use curt_memory::{MemoryAccounts, MemoryLinkStore, MemoryQuotas};
use curt_sqlite::{Sqlite, SqliteSettings};
use curt_testkit::intercept::{Call, InterceptedLinks, Interceptor};
use curt_testkit::keys::random_supply;
use curt_testkit::sample::{self, SampleWrites};

use crate::world::START;

const LEAVER: OwnerId = OwnerId(1);
const HEIR: OwnerId = OwnerId(2);
/// Of the leaver: these work, one has expired, one is switched off.
const KEPT: [&str; 5] = ["one", "two", "three", "expired", "off"];
/// What the leaver had deleted, also after it was switched off.
const DELETED: [&str; 2] = ["gone", "gone-off"];
/// The heir's own.
const OWN: &str = "own";

/// A process that dies at one of its calls, before or after the store has done it.
struct Kill(AtomicUsize);

impl Kill {
    fn step(&self) -> PortResult<()> {
        let is_alive = |left: usize| left.checked_sub(1);
        let took = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_alive);
        let dead = |_| PortError::new(ErrorKind::Timeout, "killed", "answer", "killed");
        took.map(drop).map_err(dead)
    }
}

#[async_trait]
impl Interceptor for Kill {
    async fn before(&self, _call: Call) -> PortResult<()> {
        self.step()
    }

    async fn after(&self, _call: Call) -> PortResult<()> {
        self.step()
    }
}

/// A server that lives for so many steps.
struct Process {
    links: Arc<Links>,
    accounts: AccountServices,
}

impl Process {
    fn start(
        database: &Arc<dyn SeededDatabase>,
        accounts: &Arc<MemoryAccounts>,
        steps: usize,
    ) -> Self {
        let store = InterceptedLinks::new(database.clone(), Kill(AtomicUsize::new(steps)));
        let clock = Arc::new(ManualClock::at(START));
        let resolver = Resolver::new(
            ResolverSettings::default(),
            store.clone(),
            Arc::default(),
            clock.clone(),
            ResolveMetrics::default(),
        );
        let links = Links::new(
            LinkSettings::default(),
            store.into(),
            random_supply(Alphabet::Base62, 7),
            Arc::default(),
            resolver,
            clock.clone(),
            LinkMetrics::default(),
        );
        let quotas = Arc::new(MemoryQuotas::new(clock.clone()));
        let accounts = AccountServices::new(
            AccountSettings::default(),
            LimitSettings::default(),
            accounts.clone(),
            quotas,
            clock,
        );
        Self {
            links,
            accounts: accounts.unwrap(),
        }
    }

    /// `None`: it was killed.
    async fn remove(&self, links: Option<LinksOfLeaver>) -> Option<u64> {
        let operations = LinkOperations {
            links: &self.links,
            accounts: &self.accounts,
        };
        match operations
            .remove_user(LEAVER, links, Origin::OPERATOR)
            .await
        {
            Ok(cleared) => Some(cleared),
            Err(UserRemovalError::Link(LinkError::Store(dead))) if dead.backend == "killed" => None,
            Err(other) => panic!("{other:?}"),
        }
    }
}

async fn accounts() -> Arc<MemoryAccounts> {
    let accounts = Arc::new(MemoryAccounts::new());
    for (id, email) in [(LEAVER, "ann@example.com"), (HEIR, "bob@example.com")] {
        let user = sample::user(id.0, email);
        assert!(accounts.add_user(&user).await.unwrap());
    }
    accounts
}

fn link(key: &str) -> Link {
    let own = Link {
        owner: LEAVER,
        ..sample::alias(key)
    };
    match key {
        OWN => Link { owner: HEIR, ..own },
        "expired" => Link {
            expires_at: Some(sample::later(1)),
            ..own
        },
        "off" => Link {
            state: LinkState::Disabled,
            ..own
        },
        "gone" => Link {
            state: LinkState::Deleted,
            ..own
        },
        "gone-off" => Link {
            state: LinkState::DeletedDisabled,
            ..own
        },
        _ => own,
    }
}

async fn insert(database: &Arc<dyn SeededDatabase>, keys: &[&str]) {
    let links: Vec<Link> = keys.iter().map(|key| link(key)).collect();
    let inserted = database.insert(links).await.unwrap();
    assert!(inserted.iter().all(|is_new| *is_new));
}

async fn stored(database: &Arc<dyn SeededDatabase>, key: &str) -> Link {
    database.get(&sample::id(key)).await.unwrap().unwrap()
}

/// The links that the leaver still has, deleted ones included.
async fn left(database: &Arc<dyn SeededDatabase>) -> Vec<String> {
    let mut left = Vec::new();
    for state in [None, Some(EffectiveState::Deleted)] {
        let query = ListQuery {
            owner: Some(LEAVER),
            state,
            now: START,
            limit: 100,
            ..ListQuery::default()
        };
        let page = database.list(&query).await.unwrap();
        left.extend(page.links.iter().map(|link| link.id.key.to_string()));
    }
    left
}

/// Kills the removal at each of its steps, the first retry somewhere, and lets the second finish.
async fn kill_everywhere(open: impl Fn() -> Arc<dyn SeededDatabase>, links: LinksOfLeaver) {
    let mut interrupted = 0;
    for steps in 0.. {
        let (database, accounts) = (open(), accounts().await);
        insert(&database, &[&KEPT[..], &DELETED, &[OWN]].concat()).await;
        let process = |steps| Process::start(&database, &accounts, steps);
        let first = process(steps).remove(Some(links)).await;
        let what = format!("{links:?}, killed after {steps} steps");
        if first.is_none() {
            interrupted +=
                usize::from((1..KEPT.len() + DELETED.len()).contains(&left(&database).await.len()));
            let users = process(999).accounts.users;
            let user = users.get(UserRef::Id(LEAVER)).await;
            user.unwrap_or_else(|_| panic!("{what}: the account goes last"));
            let second = process((steps * 7) % 23).remove(Some(links)).await;
            if second.is_none() {
                let third = process(999).remove(Some(links)).await;
                assert!(third.is_some(), "{what}");
            }
        }
        let after = process(999);
        judge(&after, &database, links, &what).await;
        if first.is_some() {
            assert!(steps > 2 * (KEPT.len() + DELETED.len()), "{what}");
            break;
        }
    }
    assert!(interrupted > 2, "only {interrupted} deaths in the middle");
}

async fn judge(
    after: &Process,
    database: &Arc<dyn SeededDatabase>,
    links: LinksOfLeaver,
    what: &str,
) {
    let user = after.accounts.users.get(UserRef::Id(LEAVER)).await;
    assert!(matches!(user, Err(AccountError::NotFound)), "{what}");
    assert_eq!(left(database).await, [""; 0], "{what}: nobody owns these");
    for key in KEPT {
        let (before, now) = (link(key), stored(database, key).await);
        match links {
            LinksOfLeaver::HandOver(heir) => {
                assert_eq!(
                    (now.owner, now.state),
                    (heir, before.state),
                    "{what}: {key}"
                );
                assert_eq!(now.target, before.target, "{what}: {key}");
            }
            LinksOfLeaver::Delete => assert_eq!(now.state, LinkState::Tombstone, "{what}: {key}"),
        }
    }
    for key in DELETED {
        assert_gone_for_good(after, database, key, what).await;
    }
    assert_eq!(stored(database, OWN).await, link(OWN), "{what}");
}

async fn assert_gone_for_good(
    after: &Process,
    database: &Arc<dyn SeededDatabase>,
    key: &str,
    what: &str,
) {
    let state = stored(database, key).await.state;
    assert_eq!(state, LinkState::Tombstone, "{what}: {key}");
    for who in [Who::Anybody, Who::Owner(HEIR), Who::Owner(LEAVER)] {
        let restored = after.links.restore(who, key, None, None).await;
        assert!(
            matches!(restored, Err(LinkError::NotFound)),
            "{what}: {key}"
        );
    }
}

fn in_memory() -> Arc<dyn SeededDatabase> {
    Arc::new(MemoryLinkStore::new())
}

#[tokio::test]
async fn a_removal_that_was_killed_is_finished_by_the_same_request() {
    for links in [LinksOfLeaver::HandOver(HEIR), LinksOfLeaver::Delete] {
        kill_everywhere(in_memory, links).await;
    }
}

#[tokio::test]
async fn a_removal_that_was_killed_is_finished_by_the_same_request_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let files = AtomicUsize::new(0);
    let open = || {
        let file = files.fetch_add(1, Ordering::Relaxed).to_string();
        let settings = SqliteSettings::default();
        Sqlite::open(folder.path().join(file), settings)
            .unwrap()
            .links() as _
    };
    for links in [LinksOfLeaver::HandOver(HEIR), LinksOfLeaver::Delete] {
        kill_everywhere(&open, links).await;
    }
}

#[tokio::test]
async fn what_a_removed_user_had_deleted_is_gone_for_good_whatever_is_said_about_links() {
    for links in [
        None,
        Some(LinksOfLeaver::HandOver(HEIR)),
        Some(LinksOfLeaver::Delete),
    ] {
        let (database, accounts) = (in_memory(), accounts().await);
        insert(&database, &DELETED).await;
        let process = Process::start(&database, &accounts, 999);
        let cleared = process.remove(links).await;
        assert_eq!(cleared, Some(0), "{links:?}: no link that was left");
        for key in DELETED {
            assert_gone_for_good(&process, &database, key, &format!("{links:?}")).await;
        }
    }
}
