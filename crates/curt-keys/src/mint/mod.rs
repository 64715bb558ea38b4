//! Making keys ahead of time: random ones into the ledgers, fixed-width ones into files, and free rows into the links
//! database. Each is a reconciler without input: it reads how much there is and moves it toward the high mark.

mod ledgers;
mod random;

pub(crate) use ledgers::LedgerFill;
pub use random::Minter;
