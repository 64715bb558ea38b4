//! DynamoDB behind the ports of links, accounts, clicks and cursors.
//!
//! # Addresses
//! `dynamodb://key:secret@region/prefix?endpoint=http://127.0.0.1:8000`. Credentials that the address leaves out are those
//! of the environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`). The endpoint is the region's
//! where none is named. The names of all tables begin with the prefix; several installations may share an account, each
//! with a prefix of its own. Tables are made with the first call, or by `curt migrate`; requests to them are paid for one
//! by one.
//!
//! # Consistency
//! What must not happen twice is a conditional write: `attribute_not_exists` for a key, a condition on the revision for
//! every change, or a transaction of several. Reads are strongly consistent, but for counts of all links.
//!
//! # Failures
//! The client repeats nothing by itself. A write without an answer may have been applied: what that means is decided in
//! [`curt_adapter_kit::wide_column`]. What the engine refuses for its limits has the kind `Throttled`.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod accounts;
mod address;
mod bulk;
mod clicks;
mod connect;
mod cursor;
mod engine;
mod failure;
mod item;
mod links;
mod lists;
mod notes;
mod schema;
mod settings;
mod write;

use std::fmt;
use std::sync::Arc;

use curt_adapter_kit::wide_column::accounts::WideAccounts;
use curt_adapter_kit::wide_column::clicks::WideClicks;
use curt_adapter_kit::wide_column::links::WideLinks;
use curt_adapter_kit::{AccountTransfer, ClickTransfer, TableClicks};
use curt_core::PortResult;
use curt_core::ports::{
    AccountItem, Accounts, ClickDatabase, ClickItem, Cursor, LinkDatabase, LinkTransfer, MapNotes,
    StreamId, Transfer,
};

use address::Route;
use engine::Engine;
use lists::DynamoDbLists;

pub use curt_adapter_kit::Migration;
pub use settings::DynamoDbSettings;

/// Tables of an account and a region.
#[derive(Clone)]
pub struct DynamoDb {
    engine: Arc<Engine>,
}

impl DynamoDb {
    /// Reads the address, and the environment for credentials, and connects to nothing yet.
    pub fn open(address: &str, settings: &DynamoDbSettings) -> PortResult<Self> {
        let route = Route::parse(address, |name| std::env::var(name).ok())?;
        let engine = Engine::new(route, settings);
        Ok(Self { engine })
    }

    /// Makes the tables, or brings them up to date, and says what that took. Returns when they can be used.
    pub async fn migrate(&self) -> PortResult<&'static [Migration]> {
        let (route, settings) = (&self.engine.route, &self.engine.settings);
        schema::migrate(&connect::schema_client(route, settings), route).await
    }

    /// What [`migrate`](Self::migrate) would do.
    pub async fn pending(&self) -> PortResult<&'static [Migration]> {
        let (route, settings) = (&self.engine.route, &self.engine.settings);
        schema::pending(&connect::schema_client(route, settings), route).await
    }

    #[must_use]
    pub fn links(&self) -> Arc<dyn LinkDatabase> {
        Arc::new(self.wide_links())
    }

    /// All of them, to be copied to another database or from one.
    #[must_use]
    pub fn link_transfer(&self) -> Arc<dyn LinkTransfer> {
        Arc::new(self.wide_links())
    }

    fn wide_links(&self) -> WideLinks {
        let rows = Arc::new(links::DynamoDbLinks::new(Arc::clone(&self.engine)));
        WideLinks::new(
            Arc::clone(&rows) as _,
            rows,
            DynamoDbLists::rows(&self.engine),
            self.engine.deadlines.clone(),
            self.engine.settings.totals_interval,
        )
    }

    /// Where a copy notes how far it has come.
    #[must_use]
    pub fn notes(&self) -> Arc<dyn MapNotes> {
        Arc::new(notes::DynamoDbNotes::new(Arc::clone(&self.engine)))
    }

    #[must_use]
    pub fn accounts(&self) -> Arc<dyn Accounts> {
        Arc::new(self.wide_accounts())
    }

    /// All that is kept of them, to be copied to another database or from one.
    #[must_use]
    pub fn account_transfer(&self) -> Arc<dyn Transfer<AccountItem>> {
        let accounts = Arc::new(self.wide_accounts());
        Arc::new(AccountTransfer::new(failure::BACKEND, accounts))
    }

    fn wide_accounts(&self) -> WideAccounts {
        let rows = accounts::DynamoDbAccounts::new(Arc::clone(&self.engine));
        let lists = DynamoDbLists::rows(&self.engine);
        let deadlines = self.engine.deadlines.clone();
        WideAccounts::new(Arc::new(rows), lists, deadlines)
    }

    #[must_use]
    pub fn clicks(&self) -> Arc<dyn ClickDatabase> {
        Arc::new(TableClicks::new(self.wide_clicks()))
    }

    /// All that is kept of them, to be copied to another database or from one; `copy` tells copies of different
    /// sources apart.
    #[must_use]
    pub fn click_transfer(&self, copy: StreamId) -> Arc<dyn Transfer<ClickItem>> {
        Arc::new(ClickTransfer::new(Arc::new(self.wide_clicks()), copy))
    }

    fn wide_clicks(&self) -> WideClicks {
        let rows = clicks::DynamoDbClicks::new(Arc::clone(&self.engine));
        let lists = DynamoDbLists::rows(&self.engine);
        let deadlines = self.engine.deadlines.clone();
        WideClicks::new(Arc::new(rows), lists, deadlines)
    }

    #[must_use]
    pub fn cursor(&self) -> Arc<dyn Cursor> {
        Arc::new(cursor::DynamoDbCursor::new(Arc::clone(&self.engine)))
    }
}

impl fmt::Debug for DynamoDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDb")
            .field("engine", &self.engine)
            .finish()
    }
}
