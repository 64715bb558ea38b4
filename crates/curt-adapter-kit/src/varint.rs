//! Numbers in stored bytes.

pub(crate) use curt_core::varint::push;

/// The bytes are not what this version writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored bytes are damaged")]
pub struct Damaged;

pub(crate) fn take(bytes: &mut &[u8]) -> Result<u64, Damaged> {
    curt_core::varint::take(bytes).ok_or(Damaged)
}

/// As many bytes as the number before them says.
pub(crate) fn take_counted<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Damaged> {
    let count = usize::try_from(take(bytes)?).map_err(|_| Damaged)?;
    let (taken, rest) = bytes.split_at_checked(count).ok_or(Damaged)?;
    *bytes = rest;
    Ok(taken)
}
