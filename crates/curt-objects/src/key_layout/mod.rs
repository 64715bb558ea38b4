//! How keys lie in a file, whatever the engine: fixed width, no separators, a checksum for each block.
//!
//! A key's place is its number times the width. [`Checksums`] describes the file and holds the checksums; [`Tally`] makes
//! them while keys are written. A local disk keeps them in a side file; engines far away keep them at the file's end, so
//! that there is one thing to publish.

mod checksums;
mod name;
mod operation;
mod tally;

pub(crate) use checksums::Checksums;
pub(crate) use name::{checked_name, is_name};
pub(crate) use operation::Operation;
pub(crate) use tally::Tally;

use curt_core::ports::KeyFileLayout;
use curt_core::{Key, PortResult};

pub(crate) fn check_layout(layout: KeyFileLayout, operation: Operation) -> PortResult<()> {
    if checksums::is_possible(layout) {
        return Ok(());
    }
    Err(operation.invalid(format!(
        "{layout:?} cannot hold keys: use a width from 1 to {} and blocks of 1 to {} keys",
        curt_core::limits::KEY_BYTES_MAX,
        checksums::BLOCK_KEYS_MAX
    )))
}

/// The keys one after the other. A key of another width is refused.
pub(crate) fn join(keys: &[Key], width: usize, operation: Operation) -> PortResult<Vec<u8>> {
    if let Some(odd) = keys.iter().find(|key| key.as_bytes().len() != width) {
        return Err(operation.invalid(format!("the key {odd} is not {width} symbols wide")));
    }
    let mut bytes = Vec::with_capacity(keys.len() * width);
    for key in keys {
        bytes.extend_from_slice(key.as_bytes());
    }
    Ok(bytes)
}
