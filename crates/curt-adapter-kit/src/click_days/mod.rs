//! Everything that was counted for one subject on one day, as SQL engines store it: one row, whatever was counted.
//! A report on a year reads 365 of them.

mod counts;
mod link_number;
mod report;
mod stored;

pub use crate::varint::Damaged;
pub use link_number::{link_number, link_of_number};
pub use report::{Ranking, Series, estimate};
pub use stored::StoredDay;
