//! The KEYS line: mint, ledger, sync, pool, buffer, and the strategies.

mod account;
mod buffer;
mod error;
mod lease;
mod metrics;
mod mint;
mod pace;
mod settings;
mod supply;
mod sync;

pub use account::KeyAccounts;
pub use buffer::Ring;
pub use error::KeyError;
pub use metrics::KeyMetrics;
pub use mint::Minter;
pub use settings::{
    BufferSettings, ClaimSettings, FileSettings, HashKind, ID_BITS, KeySettings, LedgerSettings,
    PoolSettings, SnowflakeLayout, Strategy, UnknownHash, UnknownStrategy,
};
pub use supply::{KeyHint, KeyPorts, KeySupply, SuppliedKey};
