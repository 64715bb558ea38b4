//! Where a link leads.

use std::fmt;

use crate::limits::TARGET_BYTES_MAX;

/// A target as it goes into a `Location` header: the serialised URL, visible ASCII only. What may be a target at
/// all (schemes, hosts, own domains) is the admission policy's to decide; this type only holds what is safe to send.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Target(Box<str>);

/// Why a text cannot be sent as a `Location`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("a target must not be empty")]
    Empty,
    #[error("a target has at most {TARGET_BYTES_MAX} bytes")]
    TooLong,
    #[error("a target holds only visible ASCII characters")]
    Symbol,
}

impl Target {
    pub fn from_serialised(text: impl Into<Box<str>>) -> Result<Self, TargetError> {
        let text = text.into();
        check_serialised(text.as_bytes())?;
        Ok(Self(text))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Checks the bytes of a serialised target without building a [`Target`].
pub(crate) fn check_serialised(bytes: &[u8]) -> Result<(), TargetError> {
    if bytes.is_empty() {
        return Err(TargetError::Empty);
    }
    if bytes.len() > TARGET_BYTES_MAX {
        return Err(TargetError::TooLong);
    }
    if !bytes.iter().all(u8::is_ascii_graphic) {
        return Err(TargetError::Symbol);
    }
    Ok(())
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_could_split_a_header_is_a_target() {
        for text in [
            "https://a/\r\nX: y",
            "https://a/\n",
            "https://a/ b",
            "https://ä/",
            "https://a/\0",
            "\t",
        ] {
            assert_eq!(
                Target::from_serialised(text),
                Err(TargetError::Symbol),
                "{text:?}"
            );
        }
        assert!(Target::from_serialised("https://example.com/?a=b#c").is_ok());
    }
}
