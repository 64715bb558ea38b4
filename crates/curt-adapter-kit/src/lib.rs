//! What adapters share. A module is here when at least two engines use it.
//!
//! Adapters are naive on purpose: they keep a port's promises and know no policy. Retries, deadlines and metrics are
//! wrappers of the same trait, and errors say what happened as a [`PortError`](curt_core::PortError).

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod account_copies;
pub mod address;
mod api_key_table;
mod cache_entry;
pub mod click_blocks;
mod click_copies;
pub mod click_days;
mod click_tables;
mod effect;
mod encoded_window;
mod feed;
mod ledger_form;
pub mod link_changes;
mod lock_file;
mod off_runtime;
pub mod page_cursor;
pub mod plain_text;
pub mod reconnect;
pub mod rollup_runs;
mod schema;
mod varint;
pub mod wide_column;

pub use account_copies::{AccountCopies, AccountPart, AccountTransfer};
pub use api_key_table::ApiKeyTable;
pub use cache_entry::{CacheEntry, CacheEpoch};
pub use click_copies::{ClickCopies, ClickTransfer, StoredRun};
pub use click_tables::{ClickTables, TableClicks};
pub use effect::Effect;
pub use encoded_window::EncodedWindow;
pub use feed::{BufferedFeed, FeedBuffer};
pub use ledger_form::refuse_cursor_form;
pub use lock_file::LockFile;
pub use off_runtime::off_runtime;
pub use schema::{Migration, SchemaError, pending_migrations};
