//! Values to test with. Every function takes what matters to a test and fills in the rest.

#![expect(
    clippy::expect_used,
    reason = "a sample that is no valid value is a mistake in the test, and should stop it"
)]

use std::time::Duration;

use curt_core::ports::{ApiKey, BatchId, InsertRequest, Once, Owner};
use curt_core::{
    DomainId, Key, KeyOrigin, Link, LinkId, LinkState, OwnerId, RedirectStatus, Revision, Target,
    UnixMillis, Visibility,
};

/// The instant at which samples are made: in 2023, a round number of seconds.
pub const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

/// The owner of sample links.
pub const OWNER: OwnerId = OwnerId(42);

/// `seconds` after [`NOW`].
#[must_use]
pub fn later(seconds: u64) -> UnixMillis {
    NOW.plus(Duration::from_secs(seconds))
}

#[must_use]
pub fn key(text: &str) -> Key {
    Key::parse(text).expect("a sample key is a key")
}

/// `count` different keys that start with `prefix`.
#[must_use]
pub fn keys(prefix: &str, count: usize) -> Vec<Key> {
    (0..count)
        .map(|n| key(&format!("{prefix}{n:06}")))
        .collect()
}

#[must_use]
pub fn id(text: &str) -> LinkId {
    LinkId::new(DomainId::DEFAULT, key(text))
}

#[must_use]
pub fn target(text: &str) -> Target {
    Target::from_serialised(text).expect("a sample target is a target")
}

/// An active link with a key from the ledger, made at [`NOW`], that never expires.
#[must_use]
pub fn link(text: &str) -> Link {
    Link {
        id: id(text),
        target: target(&format!("https://example.com/{text}")),
        owner: OWNER,
        state: LinkState::Active,
        revision: Revision::FIRST,
        origin: KeyOrigin::Ledger,
        created_at: NOW,
        updated_at: NOW,
        expires_at: None,
        valid_since: None,
        max_clicks: None,
        visibility: Visibility::Public,
        password_hash: None,
        status: RedirectStatus::Found,
        forward_query: false,
        title: None,
        tags: Vec::new(),
    }
}

/// A link whose key a person chose.
#[must_use]
pub fn alias(text: &str) -> Link {
    Link {
        origin: KeyOrigin::Alias,
        ..link(text)
    }
}

/// A link that has expired from `at` on.
#[must_use]
pub fn expiring(text: &str, at: UnixMillis) -> Link {
    Link {
        expires_at: Some(at),
        ..link(text)
    }
}

/// A link with something in every field, none of it a default.
#[must_use]
pub fn full_link(text: &str) -> Link {
    Link {
        owner: OwnerId(7_000_000_000_000_000_000),
        state: LinkState::Disabled,
        revision: Revision {
            generation: 3,
            version: 9,
        },
        origin: KeyOrigin::Hash,
        created_at: UnixMillis(NOW.0 + 1),
        updated_at: UnixMillis(NOW.0 + 2),
        expires_at: Some(UnixMillis(NOW.0 + 3)),
        valid_since: Some(UnixMillis(NOW.0 - 4)),
        max_clicks: Some(5),
        visibility: Visibility::Password,
        password_hash: Some("$argon2id$v=19$sample".into()),
        status: RedirectStatus::PermanentRedirect,
        forward_query: true,
        title: Some("A title".into()),
        tags: vec!["zebra".into(), "Apple".into(), "mango tree".into()],
        ..link(text)
    }
}

/// A request without an idempotency key, made at [`NOW`].
#[must_use]
pub fn request(links: Vec<Link>) -> InsertRequest {
    InsertRequest {
        links,
        once: None,
        now: NOW,
    }
}

/// A request with an idempotency key, made at [`NOW`].
#[must_use]
pub fn request_once(links: Vec<Link>, once: Once) -> InsertRequest {
    InsertRequest {
        links,
        once: Some(once),
        now: NOW,
    }
}

#[must_use]
pub fn once(key: &str, fingerprint: u8) -> Once {
    Once {
        owner: OWNER,
        key: key.into(),
        fingerprint: [fingerprint; 32],
    }
}

#[must_use]
pub fn batch(name: &str) -> BatchId {
    BatchId(name.into())
}

#[must_use]
pub fn owner(id: u64, name: &str) -> Owner {
    Owner {
        id: OwnerId(id),
        name: name.into(),
        created_at: NOW,
    }
}

#[must_use]
pub fn api_key(prefix: &str, owner: u64, name: &str) -> ApiKey {
    ApiKey {
        prefix: prefix.into(),
        secret_hash: [0xA5; 32],
        owner: OwnerId(owner),
        name: name.into(),
        created_at: NOW,
        expires_at: None,
        revoked_at: None,
    }
}
