//! What owners and keys may be called.

use curt_core::limits::NAME_BYTES_MAX;

/// Why a text is not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a name must not be empty")]
    Empty,
    #[error("a name has at most {NAME_BYTES_MAX} bytes")]
    TooLong,
    #[error("a name must not hold control characters")]
    Control,
}

/// The name without spaces around it.
pub(crate) fn check(text: &str) -> Result<&str, NameError> {
    let name = text.trim_matches(' ');
    if name.is_empty() {
        Err(NameError::Empty)
    } else if name.len() > NAME_BYTES_MAX {
        Err(NameError::TooLong)
    } else if name.chars().any(char::is_control) {
        Err(NameError::Control)
    } else {
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_lines() {
        assert_eq!(check("  Ann's phone "), Ok("Ann's phone"));
        assert_eq!(check("Zoë"), Ok("Zoë"));
        assert_eq!(check(""), Err(NameError::Empty));
        assert_eq!(check("   "), Err(NameError::Empty));
        assert_eq!(check(&"a".repeat(100)), Ok("a".repeat(100).as_str()));
        assert_eq!(check(&"a".repeat(101)), Err(NameError::TooLong));
        for text in ["a\nb", "a\0", "\ta", "a\u{7f}", "a\u{85}b", "a\u{1b}[31m"] {
            assert_eq!(check(text), Err(NameError::Control), "{text:?}");
        }
    }
}
