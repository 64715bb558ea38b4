//! Single clicks as engines store them: thousands in a block of columns.
//!
//! An engine keeps a block as one value beside a few numbers and knows nothing of what is in it. Which blocks may have
//! clicks of a subject is told by a filter beside each of them.

mod block;
mod columns;
mod read;
pub mod subjects;

pub use block::{
    BlockColumn, BlockRows, BlockTimes, BlockWriter, ClickPlace, NewBlock, address_bytes, encode,
    outcome_bytes, owner_bytes, tags_bytes,
};
pub use read::{Block, BlockClicks};

/// Clicks of a block at most. Larger ones share more of their texts, and reading one click reads more of them.
pub const BLOCK_CLICKS_MAX: usize = 16_384;

/// The columns, by their place.
pub mod field {
    use crate::click::Dimension;

    pub const OUTCOME: usize = 0;
    pub const OWNER: usize = 1;
    pub const TAGS: usize = 2;
    pub const CLASS: usize = 3;
    pub const COUNTRY: usize = 4;
    pub const BROWSER: usize = 5;
    pub const SYSTEM: usize = 6;
    pub const DEVICE: usize = 7;
    pub const REFERRER: usize = 8;
    pub const LANGUAGE: usize = 9;
    pub const ADDRESS: usize = 10;
    /// The first of [`Dimension::DETAILS`], which follow each other.
    pub const DETAILS: usize = 11;
    pub const FIELDS: usize = DETAILS + Dimension::DETAILS.len();
}
