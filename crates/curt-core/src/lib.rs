//! Words and promises of curt: no I/O, no async runtime, no driver, no HTTP.
//!
//! # Glossary
//! - **key**: the last part of a short URL. **alias**: a key that a person chose.
//! - **link**: a key with its target and everything that decides whether it redirects.
//! - **domain**: the host that a key lives under; `(domain, key)` is a link's identity.
//! - **mint**: make a new random key. **ledger**: the durable inventory of minted keys. **pool**: the
//!   fast queue between ledger and servers. **buffer**: the keys that one process holds.
//! - **tombstone**: the row that a deleted key leaves behind, so that it cannot be reborn.
//! - **revision**: generation and version of a link; edits name the one that they saw.
//! - **port**: a trait behind which an outside engine stands. **adapter**: one engine's implementation.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod account;
pub mod alphabet;
pub mod attribution;
pub mod click;
pub mod click_block;
pub mod clock;
pub mod clock_guard;
pub mod error;
mod field;
mod followed_file;
pub mod key;
pub mod key_rules;
pub mod limits;
pub mod link;
mod low_priority;
pub mod names;
pub mod owner;
pub mod permute;
pub mod placement;
pub mod ports;
mod repeats;
pub mod reserved;
pub mod served_link;
pub mod sketch;
pub mod target;
pub mod unwanted;
pub mod varint;

pub use account::{Allowance, ApiKeyNumber, LimitedAccounts, Role, Scope, Scopes, User};
pub use alphabet::Alphabet;
pub use attribution::{Attribution, PackedTags};
pub use click::{
    Click, ClickClass, ClickDetails, ClickOutcome, ClickSubject, Day, Dimension, Rollup, SubjectDay,
};
pub use clock::{Clock, SystemClock, UnixMillis};
pub use clock_guard::{ClockGuard, ClockGuardSettings, ClockJump};
pub use error::{ErrorKind, PortError, PortResult};
pub use field::{Field, FieldError, FieldErrors};
pub use followed_file::{FollowedFile, Looked};
pub use key::{DomainId, Key, LinkId, LinkRef};
pub use key_rules::{KeyRefusal, KeyRules};
pub use link::{
    EffectiveState, GoneCause, KeyOrigin, Link, LinkState, RedirectStatus, Revision, Visibility,
};
pub use low_priority::{lower_priority, spawn_low_priority, yield_core};
pub use owner::OwnerId;
pub use placement::{Epoch, NodeIndex, Placement, ShardId, ShardMap};
pub use repeats::RepeatLimiter;
pub use served_link::ServedLink;
pub use sketch::Sketch;
pub use target::Target;
pub use unwanted::{UnwantedWordError, UnwantedWords};
