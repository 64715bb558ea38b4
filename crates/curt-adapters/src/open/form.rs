//! The forms of a ledger, and what each database calls them.

use curt_core::{PortError, PortResult};

use super::invalid;
#[cfg(feature = "mysql")]
use crate::mysql;
#[cfg(feature = "postgres")]
use crate::postgres;
use crate::sqlite;

/// What becomes of a key that was taken from a ledger. Not every engine has every form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeysForm {
    #[default]
    Delete,
    Status,
    UsedTable,
    /// Stays, and a cursor moves past it.
    Cursor,
}

impl KeysForm {
    pub(super) fn in_sqlite(self) -> PortResult<sqlite::LedgerForm> {
        Ok(match self {
            Self::Delete => sqlite::LedgerForm::Delete,
            Self::Status => sqlite::LedgerForm::Status,
            Self::UsedTable => sqlite::LedgerForm::UsedTable,
            Self::Cursor => return Err(no_cursor_form("SQLite")),
        })
    }

    #[cfg(feature = "postgres")]
    pub(super) fn in_postgres(self) -> postgres::LedgerForm {
        match self {
            Self::Delete => postgres::LedgerForm::Delete,
            Self::Status => postgres::LedgerForm::Status,
            Self::UsedTable => postgres::LedgerForm::UsedTable,
            Self::Cursor => postgres::LedgerForm::Ranges,
        }
    }

    #[cfg(feature = "mysql")]
    pub(super) fn in_mysql(self) -> PortResult<mysql::LedgerForm> {
        Ok(match self {
            Self::Delete => mysql::LedgerForm::Delete,
            Self::Status => mysql::LedgerForm::Status,
            Self::UsedTable => mysql::LedgerForm::UsedTable,
            Self::Cursor => return Err(no_cursor_form("MySQL")),
        })
    }
}

fn no_cursor_form(engine: &str) -> PortError {
    invalid(format!(
        "{engine} has no form \"cursor\": use delete, status or used-table"
    ))
}
