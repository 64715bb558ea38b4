//! The KEYS line: mint, ledger, sync, pool, buffer, and the strategies.

mod account;
mod buffer;
mod drive;
mod error;
mod ids;
mod lease;
mod metrics;
mod mint;
mod pace;
mod preload;
mod secret;
mod settings;
mod strategy;
mod supply;
mod sync;

pub use account::KeyAccounts;
pub use drive::{Driven, drive};
pub use error::KeyError;
pub use metrics::KeyMetrics;
pub use mint::Minter;
pub use settings::{
    BufferSettings, ClaimSettings, FileSettings, HashKind, ID_BITS, KeySettings, LedgerSettings,
    PoolSettings, SnowflakeLayout, Strategy, UnknownHash, UnknownStrategy,
};
pub use supply::{KeyHint, KeyPorts, KeySupply, SuppliedKey};
