//! API keys over the memory adapter, with a clock that the tests move.

#![allow(clippy::unwrap_used, reason = "in a test, an unwrap is an assertion")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use curt_accounts::{AccountError, ApiKeys, VERDICT_TTL};
use curt_adapters::memory::MemoryAccounts;
use curt_core::clock::ManualClock;
use curt_core::ports::{Accounts, ApiKey, Owner};
use curt_core::{ErrorKind, OwnerId, PortError, PortResult, UnixMillis};

const START: UnixMillis = UnixMillis(1_800_000_000_000);
const HOUR: Duration = Duration::from_secs(3_600);

/// Counts reads, fails on demand, and can pretend that the next prefixes and ids are taken.
#[derive(Default)]
struct Probed {
    inner: MemoryAccounts,
    reads: AtomicU64,
    failing: AtomicBool,
    refusals: AtomicU64,
}

impl Probed {
    fn refuses(&self) -> bool {
        self.refusals
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            })
            .is_ok()
    }
}

#[async_trait]
impl Accounts for Probed {
    async fn add_owner(&self, owner: &Owner) -> PortResult<bool> {
        Ok(!self.refuses() && self.inner.add_owner(owner).await?)
    }

    async fn owner_by_name(&self, name: &str) -> PortResult<Option<Owner>> {
        self.inner.owner_by_name(name).await
    }

    async fn owners(&self) -> PortResult<Vec<Owner>> {
        self.inner.owners().await
    }

    async fn add_api_key(&self, key: &ApiKey) -> PortResult<bool> {
        Ok(!self.refuses() && self.inner.add_api_key(key).await?)
    }

    async fn api_key(&self, prefix: &str) -> PortResult<Option<ApiKey>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        if self.failing.load(Ordering::SeqCst) {
            return Err(PortError::new(
                ErrorKind::Unavailable,
                "probed",
                "read a key",
                "off",
            ));
        }
        self.inner.api_key(prefix).await
    }

    async fn api_keys(&self, owner: Option<OwnerId>) -> PortResult<Vec<ApiKey>> {
        self.inner.api_keys(owner).await
    }

    async fn revoke_api_key(&self, prefix: &str, now: UnixMillis) -> PortResult<bool> {
        self.inner.revoke_api_key(prefix, now).await
    }
}

struct World {
    accounts: Arc<Probed>,
    clock: Arc<ManualClock>,
    keys: Arc<ApiKeys>,
}

impl World {
    fn new() -> Self {
        let accounts = Arc::new(Probed::default());
        let clock = Arc::new(ManualClock::at(START));
        let keys = ApiKeys::new(accounts.clone(), clock.clone());
        Self {
            accounts,
            clock,
            keys,
        }
    }

    async fn is_known(&self, token: &str) -> bool {
        self.keys.authenticate(token).await.unwrap().is_some()
    }
}

#[tokio::test]
async fn an_issued_token_stands_for_its_owner() {
    let world = World::new();
    let issued = world.keys.issue("ann", "laptop", None).await.unwrap();
    let principal = world
        .keys
        .authenticate(&issued.token)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(principal.owner, issued.key.owner);
    assert_ne!(principal.owner, OwnerId::ANONYMOUS);
    assert!(i64::try_from(principal.owner.0).is_ok());
    assert_eq!(principal.prefix, issued.key.prefix);
    assert_eq!(&*principal.name, "laptop");
}

#[tokio::test]
async fn the_owner_is_made_once() {
    let world = World::new();
    let first = world.keys.issue("ann", "laptop", None).await.unwrap();
    let second = world.keys.issue("  ann ", "phone", None).await.unwrap();
    let other = world.keys.issue("bob", "laptop", None).await.unwrap();
    assert_eq!(first.key.owner, second.key.owner);
    assert_ne!(first.key.owner, other.key.owner);
    let listed = world.keys.list().await.unwrap();
    let shown: Vec<(&str, &str)> = listed
        .iter()
        .map(|(owner, key)| (&*owner.name, &*key.name))
        .collect();
    assert_eq!(
        shown,
        [("ann", "laptop"), ("ann", "phone"), ("bob", "laptop")]
    );
}

#[tokio::test]
async fn nothing_stored_or_shown_can_be_used_as_a_token_h10() {
    let world = World::new();
    let issued = world.keys.issue("ann", "laptop", None).await.unwrap();
    let secret = &issued.token[issued.token.len() - 32..];
    for shown in [
        format!("{issued:?}"),
        format!("{:?}", world.keys.list().await.unwrap()),
    ] {
        assert!(!shown.contains(secret));
        assert!(!shown.contains(&secret[..8]));
    }
}

#[tokio::test]
async fn wrong_tokens_are_refused_alike() {
    let world = World::new();
    let token = world.keys.issue("ann", "laptop", None).await.unwrap().token;
    let other = world.keys.issue("ann", "phone", None).await.unwrap().token;
    let last = if token.ends_with('a') { "b" } else { "a" };
    let wrong_secret = format!("{}{last}", &token[..token.len() - 1]);
    let mixed = format!("{}{}", &token[..14], &other[14..]);
    let unknown = format!("curt_00000000_{}", "0".repeat(32));
    let swapped: String = token
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() {
                c.to_ascii_uppercase()
            } else {
                c
            }
        })
        .collect();
    for bad in [
        "",
        "curt_",
        &wrong_secret,
        &mixed,
        &unknown,
        &swapped,
        &token[..20],
    ] {
        assert!(!world.is_known(bad).await, "{bad:?}");
        assert!(!world.is_known(bad).await, "{bad:?}, from memory");
    }
    assert!(world.is_known(&token).await);
}

#[tokio::test]
async fn a_revoked_key_stops_here_at_once_and_elsewhere_within_a_second() {
    let world = World::new();
    let elsewhere = ApiKeys::new(world.accounts.clone(), world.clock.clone());
    let issued = world.keys.issue("ann", "laptop", None).await.unwrap();
    assert!(world.is_known(&issued.token).await);
    assert!(
        elsewhere
            .authenticate(&issued.token)
            .await
            .unwrap()
            .is_some()
    );
    world.keys.revoke(&issued.key.prefix).await.unwrap();
    assert!(!world.is_known(&issued.token).await);
    world.clock.advance(VERDICT_TTL);
    assert!(
        elsewhere
            .authenticate(&issued.token)
            .await
            .unwrap()
            .is_none()
    );
    for prefix in [&*issued.key.prefix, "nothing0", ""] {
        let again = world.keys.revoke(prefix).await;
        assert!(matches!(again, Err(AccountError::NotFound)), "{prefix}");
    }
    assert!(VERDICT_TTL <= Duration::from_secs(1));
}

#[tokio::test]
async fn an_expired_key_stops_at_its_hour() {
    let world = World::new();
    let issued = world
        .keys
        .issue("ann", "laptop", Some(START.plus(HOUR)))
        .await
        .unwrap();
    world.clock.set(START.plus(HOUR - Duration::from_millis(1)));
    assert!(world.is_known(&issued.token).await);
    world.clock.set(START.plus(HOUR));
    assert!(!world.is_known(&issued.token).await);
    for past in [START, UnixMillis(0), UnixMillis(i64::MAX)] {
        let refused = world.keys.issue("ann", "phone", Some(past)).await;
        assert!(matches!(refused, Err(AccountError::ExpiryPast)));
    }
}

#[tokio::test]
async fn decisions_are_repeated_for_a_second_good_and_bad() {
    let world = World::new();
    let good = world.keys.issue("ann", "laptop", None).await.unwrap().token;
    let bad = format!("curt_00000000_{}", "0".repeat(32));
    for token in [&good, &bad] {
        let reads = world.accounts.reads.load(Ordering::SeqCst);
        for _ in 0..10 {
            world.is_known(token).await;
        }
        assert_eq!(world.accounts.reads.load(Ordering::SeqCst), reads + 1);
        world.clock.advance(VERDICT_TTL);
        world.is_known(token).await;
        assert_eq!(world.accounts.reads.load(Ordering::SeqCst), reads + 2);
    }
    // A clock that steps back ends a decision instead of prolonging it.
    world.is_known(&good).await;
    let reads = world.accounts.reads.load(Ordering::SeqCst);
    world.clock.set(START.minus(HOUR));
    world.is_known(&good).await;
    assert_eq!(world.accounts.reads.load(Ordering::SeqCst), reads + 1);
}

#[tokio::test]
async fn a_failing_store_is_an_error_and_not_a_refusal() {
    let world = World::new();
    let token = world.keys.issue("ann", "laptop", None).await.unwrap().token;
    world.accounts.failing.store(true, Ordering::SeqCst);
    let failed = world.keys.authenticate(&token).await;
    assert_eq!(failed.unwrap_err().kind, ErrorKind::Unavailable);
    world.accounts.failing.store(false, Ordering::SeqCst);
    assert!(
        world.is_known(&token).await,
        "the failure is not remembered"
    );
}

#[tokio::test]
async fn names_are_checked_and_a_key_name_is_used_once() {
    let world = World::new();
    let long = "x".repeat(101);
    for name in ["", "  ", "a\nb", &long] {
        let owner = world.keys.issue(name, "laptop", None).await;
        assert!(matches!(owner, Err(AccountError::OwnerName(_))), "{name:?}");
        let key = world.keys.issue("ann", name, None).await;
        assert!(matches!(key, Err(AccountError::KeyName(_))), "{name:?}");
    }
    assert!(world.keys.list().await.unwrap().is_empty());
    let first = world.keys.issue("ann", "laptop", None).await.unwrap();
    let again = world.keys.issue("ann", "laptop", None).await;
    assert!(matches!(again, Err(AccountError::KeyNameTaken)));
    world.keys.revoke(&first.key.prefix).await.unwrap();
    world.keys.issue("ann", "laptop", None).await.unwrap();
}

#[tokio::test]
async fn taken_ids_and_prefixes_are_tried_again_but_not_for_ever() {
    let world = World::new();
    world.accounts.refusals.store(3, Ordering::SeqCst);
    let issued = world.keys.issue("ann", "laptop", None).await.unwrap();
    assert!(world.is_known(&issued.token).await);
    world.accounts.refusals.store(100, Ordering::SeqCst);
    let given_up = world.keys.issue("ann", "phone", None).await;
    assert!(
        matches!(given_up, Err(AccountError::Store(failure)) if failure.kind == ErrorKind::Bug)
    );
}
