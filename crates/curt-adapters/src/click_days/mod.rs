//! Everything that was counted for one subject on one day, as SQL engines store it: one row, whatever was counted.
//! A report on a year reads 365 of them.

mod counts;
mod report;
mod stored;

pub(crate) use counts::Damaged;
pub(crate) use report::{Ranking, Series, estimate};
pub(crate) use stored::StoredDay;
