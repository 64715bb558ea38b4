//! MySQL or MariaDB behind one port: minted keys. Needs MySQL 8.0 or MariaDB 10.6, for `SKIP LOCKED` and `JSON_TABLE`.
//!
//! Nothing is connected at start; tables are brought up to date before their first use. A call is one transaction. If
//! it breaks off before its commit is sent, nothing was changed; after that nobody knows, such a failure has the kind
//! `Timeout`, and callers repeat the call under the same name.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod engine;
mod failure;
mod ledger;
mod schema;
mod settings;

use std::sync::Arc;

use curt_core::PortResult;
use curt_core::ports::{KeyLedger, LedgerForm};

use curt_adapter_kit::refuse_cursor_form;
use engine::Engine;
use failure::BACKEND;

pub use curt_adapter_kit::Migration;
pub use settings::MysqlSettings;

/// A MySQL or MariaDB at an address.
#[derive(Clone, Debug)]
pub struct Mysql {
    engine: Arc<Engine>,
}

impl Mysql {
    /// Reads the address and connects to nothing yet.
    pub fn open(address: &str, settings: &MysqlSettings) -> PortResult<Self> {
        let engine = Arc::new(Engine::new(address, settings)?);
        Ok(Self { engine })
    }

    /// Brings the tables up to date and says what that took. Many processes may do so at once.
    pub async fn migrate(&self) -> PortResult<&'static [Migration]> {
        schema::migrate(&self.engine).await
    }

    /// What [`migrate`](Self::migrate) would do.
    pub async fn pending(&self) -> PortResult<&'static [Migration]> {
        schema::pending(&self.engine).await
    }

    /// The ledger in any form but [`LedgerForm::Cursor`].
    pub fn ledger(&self, form: LedgerForm) -> PortResult<Arc<dyn KeyLedger>> {
        refuse_cursor_form(BACKEND, form)?;
        Ok(Arc::new(ledger::MysqlLedger::new(
            Arc::clone(&self.engine),
            form,
        )))
    }
}
