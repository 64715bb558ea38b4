//! Numbers of one to ten bytes: seven bits per byte, the lowest first; all bytes but the last have the eighth set.

/// Appends the number.
#[inline]
pub fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push((number & 0x7f) as u8);
}

/// Takes a number off the start. `None`: the bytes end within it, or it has more than 64 bits.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    // Most numbers are this small, and a report reads hundreds of thousands of them.
    if let [byte @ ..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Some(u64::from(*byte));
    }
    let mut number = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// The bytes are not what this version writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored bytes are damaged")]
pub struct Damaged;

/// Takes a number off the start of stored bytes.
#[inline]
pub fn read(bytes: &mut &[u8]) -> Result<u64, Damaged> {
    take(bytes).ok_or(Damaged)
}

/// Takes as many bytes as the number before them says.
#[inline]
pub fn read_counted<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Damaged> {
    let count = usize::try_from(read(bytes)?).map_err(|_| Damaged)?;
    let (taken, rest) = bytes.split_at_checked(count).ok_or(Damaged)?;
    *bytes = rest;
    Ok(taken)
}
