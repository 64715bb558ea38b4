//! Positions in a list as text that clients carry to the next page.

/// The position `after` in the list `list`. The checksum tells a cut or made-up cursor from one of ours.
pub fn seal(list: &str, after: &str) -> Box<str> {
    let sealed = format!("{list}:{after}");
    let sum = crc32fast::hash(sealed.as_bytes());
    format!("{sealed}:{sum:08x}").into_boxed_str()
}

/// The position, if this list gave the cursor.
pub fn unseal<'a>(list: &str, cursor: &'a str) -> Option<&'a str> {
    let (sealed, sum) = cursor.rsplit_once(':')?;
    let sum = u32::from_str_radix(sum, 16).ok()?;
    if sum != crc32fast::hash(sealed.as_bytes()) {
        return None;
    }
    sealed.strip_prefix(list)?.strip_prefix(':')
}
