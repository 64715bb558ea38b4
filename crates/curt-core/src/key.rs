//! Keys and the identity of a link.

use std::borrow::Borrow;
use std::fmt;

use compact_str::CompactString;

use crate::limits::KEY_BYTES_MAX;

/// The last part of a short URL: 1 to 64 symbols of `A-Z a-z 0-9 - _ .`, case-sensitive, never `.` or `..`
/// (browsers fold those away before the request leaves). Up to 24 bytes are held without an allocation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(CompactString);

/// Why a text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("a key must not be empty")]
    Empty,
    #[error("a key has at most {KEY_BYTES_MAX} characters")]
    TooLong,
    #[error("a key may hold only letters, digits, '-', '_' and '.'")]
    Symbol,
    #[error("a key must not consist of dots alone")]
    Dots,
}

impl Key {
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        check(text.as_bytes())?;
        Ok(Self(CompactString::new(text)))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Checks raw bytes from the wire without building a [`Key`].
pub fn check(bytes: &[u8]) -> Result<(), KeyError> {
    if bytes.is_empty() {
        return Err(KeyError::Empty);
    }
    if bytes.len() > KEY_BYTES_MAX {
        return Err(KeyError::TooLong);
    }
    let mut only_dots = true;
    for &byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => only_dots = false,
            b'.' => {}
            _ => return Err(KeyError::Symbol),
        }
    }
    if only_dots && bytes.len() <= 2 {
        return Err(KeyError::Dots);
    }
    Ok(())
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.as_str())
    }
}

/// A host that links live under. Never null in any store: two nulls are distinct, and uniqueness would be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(pub u32);

impl DomainId {
    /// The domain of the configured public address.
    pub const DEFAULT: Self = Self(0);
}

/// A link's identity, and the primary key in every store (K-1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId {
    pub domain: DomainId,
    pub key: Key,
}

impl LinkId {
    #[must_use]
    pub fn new(domain: DomainId, key: Key) -> Self {
        Self { domain, key }
    }

    /// Reads the form that is displayed. `None`: it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (domain, key) = text.split_once('/')?;
        Some(Self::new(
            DomainId(domain.parse().ok()?),
            Key::parse(key).ok()?,
        ))
    }

    #[must_use]
    pub fn as_ref(&self) -> LinkRef<'_> {
        LinkRef {
            domain: self.domain,
            key: self.key.as_str(),
        }
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.domain.0, self.key)
    }
}

/// A [`LinkId`] that borrows its key: hashes like one, so that a cache look-up allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkRef<'a> {
    pub domain: DomainId,
    pub key: &'a str,
}

impl LinkRef<'_> {
    /// `None` when the text is not a key at all.
    #[must_use]
    pub fn to_id(self) -> Option<LinkId> {
        Some(LinkId::new(self.domain, Key::parse(self.key).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, RandomState};

    use super::*;

    #[test]
    fn refuses_what_is_not_a_key() {
        let long = "a".repeat(KEY_BYTES_MAX + 1);
        for (text, why) in [
            ("", KeyError::Empty),
            (long.as_str(), KeyError::TooLong),
            ("a/b", KeyError::Symbol),
            ("a b", KeyError::Symbol),
            ("a\r\n", KeyError::Symbol),
            ("ä", KeyError::Symbol),
            ("%41", KeyError::Symbol),
            (".", KeyError::Dots),
            ("..", KeyError::Dots),
        ] {
            assert_eq!(Key::parse(text), Err(why), "{text:?}");
        }
        assert!(Key::parse(&"a".repeat(KEY_BYTES_MAX)).is_ok());
        assert!(Key::parse("....").is_ok());
    }

    #[test]
    fn keys_differ_by_case() {
        assert_ne!(Key::parse("aB"), Key::parse("Ab"));
    }

    #[test]
    fn a_borrowed_id_hashes_like_the_owned_one() {
        let id = LinkId::new(DomainId(7), Key::parse("abc").unwrap());
        let state = RandomState::new();
        assert_eq!(state.hash_one(&id), state.hash_one(id.as_ref()));
    }
}
