//! Numbers in stored bytes.

pub use curt_core::varint::Damaged;
pub(crate) use curt_core::varint::{push, read as take, read_counted as take_counted};
