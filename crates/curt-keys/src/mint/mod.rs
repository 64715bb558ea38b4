//! Making keys ahead of time: random ones into the ledgers, fixed-width ones into files, and free rows into the links
//! database. Each is a reconciler without input: it reads how much there is and moves it toward the high watermark.

mod files;
mod ledgers;
mod random;
mod rows;

pub(crate) use files::FileFill;
pub(crate) use ledgers::LedgerFill;
pub use random::Minter;
pub(crate) use rows::RowFill;

use curt_core::names::event;

/// Inserts in a row that may bring nothing new before the key space counts as used up.
const FRUITLESS_INSERTS_MAX: u32 = 16;

/// Notices that every minted key is known already, so that a pass ends instead of trying for ever.
#[derive(Default)]
struct KeySpace {
    fruitless_inserts: u32,
}

impl KeySpace {
    fn is_exhausted(&mut self, new: u64) -> bool {
        self.fruitless_inserts = if new == 0 {
            self.fruitless_inserts + 1
        } else {
            0
        };
        let is_exhausted = self.fruitless_inserts == FRUITLESS_INSERTS_MAX;
        if is_exhausted {
            tracing::error!(
                event = event::KEY_SUPPLY_DRIED,
                "key space exhausted, use longer keys"
            );
        }
        is_exhausted
    }
}
