//! Everything that was counted for one subject on one day, as one value.

mod counts;
mod report;
mod stored;

pub use crate::varint::Damaged;
pub use report::{Ranking, Series, estimate};
pub use stored::{DayBytes, StoredDay};
