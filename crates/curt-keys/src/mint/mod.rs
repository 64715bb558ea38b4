//! Making keys ahead of time: random ones into the ledgers, fixed-width ones into files, and free rows into the links
//! database. Each is a reconciler without input: it reads how much there is and moves it toward the high mark.

mod files;
mod ledgers;
mod random;
mod rows;

pub(crate) use files::{FileFill, Progress};
pub(crate) use ledgers::{LedgerFill, ledger_lock};
pub use random::Minter;
pub(crate) use rows::RowFill;

use curt_core::names::event;

/// Inserts in a row that may bring nothing new before the key space counts as used up.
const BARREN_INSERTS_MAX: u32 = 16;

/// Notices that every minted key is known already, so that a pass ends instead of trying for ever.
#[derive(Default)]
struct Barren {
    inserts: u32,
}

impl Barren {
    fn is_reached(&mut self, new: u64) -> bool {
        self.inserts = if new == 0 { self.inserts + 1 } else { 0 };
        let reached = self.inserts == BARREN_INSERTS_MAX;
        if reached {
            tracing::error!(
                event = event::KEY_SUPPLY_DRIED,
                "every minted key is known already: use longer keys"
            );
        }
        reached
    }
}
