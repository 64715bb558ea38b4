//! Values to test with. Every function takes what matters to a test and fills in the rest.

#![expect(
    clippy::expect_used,
    reason = "a sample that is no valid value is a mistake in the test, and should stop it"
)]

use std::time::Duration;

use async_trait::async_trait;
use curt_core::account::{Allowance, ApiKeyNumber, Role, Scopes, User};
use curt_core::ports::{
    AuditEntry, BatchId, ChangeReply, CreationPlan, IdempotentRequest, Inserted, Invite,
    LinkChange, LinkStore, NewApiKey, PlannedKey, RequestToken, Session, StreamId, StreamPartition,
};
use curt_core::{
    DomainId, Key, KeyOrigin, Link, LinkId, LinkState, OwnerId, PortResult, RedirectStatus,
    Revision, Target, UnixMillis, Visibility,
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

/// A partition of the one stream that most samples come from.
#[must_use]
pub fn partition(number: u32) -> StreamPartition {
    StreamPartition {
        stream: StreamId(7),
        number,
    }
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
        made_with: None,
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
        made_with: Some(ApiKeyNumber(u32::MAX)),
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

/// A link of this generation that was deleted at its first version.
#[must_use]
pub fn released(text: &str, generation: u32) -> LinkChange {
    let version = 2;
    LinkChange {
        id: id(text),
        revision: Revision {
            generation,
            version,
        },
    }
}

/// A request of [`OWNER`] with an idempotency key.
#[must_use]
pub fn idempotent(key: &str, fingerprint: u8) -> IdempotentRequest {
    IdempotentRequest {
        owner: OWNER,
        key: key.into(),
        fingerprint: [fingerprint; 32],
    }
}

/// A plan of [`NOW`] for links with these keys.
#[must_use]
pub fn plan(token: u8, keys: &[&str]) -> CreationPlan {
    let planned = |key: &&str| PlannedKey {
        id: id(key),
        origin: KeyOrigin::Ledger,
    };
    CreationPlan {
        token: RequestToken([token; 16]),
        version: 0,
        at: NOW,
        keys: keys.iter().map(planned).collect(),
    }
}

/// What tests do with links beyond the port.
#[async_trait]
pub trait SampleWrites: LinkStore {
    /// Inserts without a token, and says per link whether it was created.
    async fn insert(&self, links: Vec<Link>) -> PortResult<Vec<bool>> {
        let inserted = self.insert_if_absent(links, None).await?;
        Ok(inserted.iter().map(Inserted::is_created).collect())
    }

    /// Deletes at whatever revision the link has.
    async fn delete(&self, id: &LinkId, now: UnixMillis) -> PortResult<ChangeReply> {
        let link = self.get(id).await?;
        let seen = link.map_or(Revision::FIRST, |link| link.revision);
        self.delete_at(id, seen, now).await
    }
}

impl<T: LinkStore + ?Sized> SampleWrites for T {}

#[must_use]
pub fn batch(name: &str) -> BatchId {
    BatchId(name.into())
}

/// A member without a middle name, a password or an allowance, made at [`NOW`].
#[must_use]
pub fn user(id: u64, email: &str) -> User {
    User {
        id: OwnerId(id),
        first_name: "Ann".into(),
        middle_name: None,
        last_name: "Example".into(),
        email: email.into(),
        password_hash: None,
        role: Role::Member,
        disabled_at: None,
        allowance: Allowance::default(),
        created_at: NOW,
        updated_at: NOW,
    }
}

/// A key for everything, made at [`NOW`], that never expires.
#[must_use]
pub fn api_key(prefix: &str, user: u64, name: &str) -> NewApiKey {
    NewApiKey {
        prefix: prefix.into(),
        secret_hash: [0xA5; 32],
        user: OwnerId(user),
        name: name.into(),
        scopes: Scopes::ALL,
        allowance: Allowance::default(),
        created_at: NOW,
        expires_at: None,
        parent: None,
        bucket: None,
    }
}

/// A session that began at [`NOW`] and lasts an hour.
#[must_use]
pub fn session(id: &str, user: u64) -> Session {
    Session {
        id: id.into(),
        secret_hash: [0x5A; 32],
        user: OwnerId(user),
        created_at: NOW,
        used_at: NOW,
        expires_at: later(3_600),
        agent: "Sample/1.0".into(),
    }
}

/// An invitation to become a member, made at [`NOW`], that lasts an hour.
#[must_use]
pub fn invite(secret_hash: u8) -> Invite {
    Invite {
        secret_hash: [secret_hash; 32],
        role: Role::Member,
        made_by: OWNER,
        created_at: NOW,
        expires_at: later(3_600),
    }
}

/// Something that [`OWNER`] did at [`NOW`].
#[must_use]
pub fn audit_entry(action: &str, subject: &str) -> AuditEntry {
    AuditEntry {
        at: NOW,
        actor: Some(OWNER),
        action: action.into(),
        subject: subject.into(),
        address: None,
    }
}
