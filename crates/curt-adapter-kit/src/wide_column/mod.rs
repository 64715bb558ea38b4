//! Stores over wide-column engines (Cassandra, DynamoDB): rows that are found by their key and change one at a time.
//!
//! What must not happen twice is a conditional write of one row, or of the rows of one partition. A conditional write
//! whose answer is lost may have been applied, or may be applied later. Each leaves a random mark in its row: it is read
//! again, and tried again under the same mark as long as nobody can tell. What is still unknown at the deadline has the
//! kind `Timeout`.
//!
//! An engine brings the rows ([`LinkRows`](links::LinkRows) and the like: one statement a method, and no decisions); what
//! is decided when, and what a lost answer means, is written here once.

pub mod accounts;
pub mod clicks;
mod deadlines;
mod decision;
pub mod links;
pub mod ordered;
mod pause;
mod together;

pub use deadlines::Deadlines;
pub use decision::{Decided, Doubt, Mark, ReadMode, ScanPart};
pub use pause::pause;
pub use together::together;
