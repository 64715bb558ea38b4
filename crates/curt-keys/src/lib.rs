//! The KEYS line: mint, ledger, sync, pool, buffer, and the strategies.
//!
//! ```text
//! mint ─► ledger ─► sync ─► pool ─► buffer ─► create
//! keygen            keysync
//! ```
//! A create asks [`KeySupply::take`] for a key and tries to store its link under it. The conditional insert alone
//! decides whether the key was free (K-1); everything in this crate only makes it likely, and cheap. So every stage
//! may fail, repeat itself or run twice at once: the worst is a conflict, which costs another try, or a lost key, which
//! the counts show (K-2). When no key is at hand, a random one is made on the spot: creation never stops because
//! the supply did.
//!
//! Where to look:
//! - `supply`: the front, [`KeySupply`]
//! - `source`: [`KeySource`], which every strategy implements, and the work of keygen and keysync behind it
//! - `strategy`: what each of the seven strategies is assembled from
//! - `mint`: keygen, which makes keys ahead of time
//! - `sync`: keysync, which moves them on and finds those of dead processes
//! - `preload` and `ids`: key files and 48-bit ids
//! - `buffer`: the keys that one process holds
//! - `key_counts`, `heartbeat` and `status`: K-2, over all processes

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod buffer;
mod error;
mod heartbeat;
mod ids;
mod key_counts;
mod lease;
mod metrics;
mod mint;
mod pace;
mod ports;
mod preload;
mod seed;
mod settings;
mod source;
mod status;
mod strategy;
mod supply;
mod sync;

pub use error::KeySupplyError;
pub use heartbeat::{Holdings, Instance};
pub use key_counts::{BalanceWatch, Duplicates, KeyAudit, KeyCounts};
pub use lease::{HeldLeases, LeaseName};
pub use metrics::KeyMetrics;
pub use mint::Minter;
pub use ports::KeyPorts;
pub use settings::{
    BufferSettings, ClaimSettings, FileSettings, HashKind, ID_BITS, KeySettings, LedgerSettings,
    PoolSettings, SnowflakeLayout, Strategy, UnknownName,
};
pub use source::{KeyRequest, KeySource, SuppliedKey};
pub use status::{KeyStatus, LedgerStatus, PoolStatus};
pub use supply::KeySupply;
