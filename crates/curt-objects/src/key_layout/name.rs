use curt_core::PortResult;

use super::Operation;

/// Longest name of a key file, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// A name is letters, digits, `.`, `_` and `-`, and starts with a letter or digit: never a path, never hidden.
pub(crate) fn is_name(name: &str) -> bool {
    let symbol = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    name.len() <= NAME_BYTES_MAX
        && name.bytes().all(symbol)
        && name
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric())
}

pub(crate) fn checked_name(name: &str, operation: Operation) -> PortResult<Box<str>> {
    if is_name(name) {
        return Ok(name.into());
    }
    Err(operation.invalid(format!(
        "{name:?} is no name for a key file: use up to {NAME_BYTES_MAX} letters, digits, '.', '_' and '-', with a letter or digit first"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_is_a_name() {
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for name in [
            "", ".", "..", ".a", "-a", "_a", "a/b", "../a", "/a", "a\\b", "a\0", "a b", "a\n",
            "\u{e4}", "a:b", &long,
        ] {
            assert!(!is_name(name), "{name:?}");
        }
        for name in ["a", "keys-0001", "A.b_c-9", &long[1..]] {
            assert!(is_name(name), "{name:?}");
        }
    }
}
