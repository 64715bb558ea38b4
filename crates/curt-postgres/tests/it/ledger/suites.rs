//! The PostgreSQL adapter against the suites of its ports.

use std::path::Path;

use curt_core::ports::LedgerForm;
use curt_testkit::engines::postgres::shared;
use curt_testkit::need;

use crate::ledger::world::open;

/// A port in a database of its own.
macro_rules! fresh {
    ($port:ident($($form:expr)?)) => {{
        let database = need!(shared()).database("suite").unwrap();
        let port = open(&database.url()).$port($($form)?);
        (database, port)
    }};
}

/// A database in which the same port can be opened again.
macro_rules! reopened {
    ($port:ident($($form:expr)?)) => {{
        let database = need!(shared()).database("suite").unwrap();
        let url = database.url();
        (database, "", async move |_: &Path| open(&url).$port($($form)?))
    }};
}

macro_rules! ledger_tests {
    ($($form_name:ident = $form:expr),+) => { $(
        mod $form_name {
            use super::*;
            curt_testkit::key_ledger_tests!(fresh!(ledger($form)));
            curt_testkit::reopening_tests!(
                reopened!(ledger($form)),
                key_ledger,
                survives_reopening_k2
            );
        }
    )+ };
}
ledger_tests!(
    deleting = LedgerForm::Delete,
    marking = LedgerForm::Status,
    moving = LedgerForm::UsedTable,
    by_range = LedgerForm::Cursor
);

curt_testkit::cursor_tests!(fresh!(cursor()));
curt_testkit::reopening_tests!(reopened!(cursor()), cursor, survives_reopening);
