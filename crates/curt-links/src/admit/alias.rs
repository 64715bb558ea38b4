//! What a person may choose as a key. Narrower than what a key may be: a dot would look like a file.

use curt_core::limits::KEY_BYTES_MAX;
use curt_core::reserved::is_reserved;
use curt_core::{Key, UnwantedWords};

use super::FieldError;

const FIELD: &str = "alias";

pub(super) fn admit(text: &str, unwanted: &UnwantedWords) -> Result<Key, FieldError> {
    let mistake = |code, message: String| Err(FieldError::new(FIELD, code, message));
    if text.is_empty() {
        return mistake("alias_empty", "An alias must not be empty.".into());
    }
    if text.len() > KEY_BYTES_MAX {
        return mistake(
            "alias_too_long",
            format!("An alias has at most {KEY_BYTES_MAX} characters."),
        );
    }
    let is_symbol = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !text.bytes().all(is_symbol) {
        return mistake(
            "alias_symbols",
            "An alias may hold only letters, digits, '-' and '_'.".into(),
        );
    }
    if is_reserved(text) {
        return mistake(
            "alias_reserved",
            "This alias is reserved: choose another one.".into(),
        );
    }
    if unwanted.are_in(text) {
        return mistake(
            "alias_unwanted",
            "This alias holds a word that is not wanted here: choose another one.".into(),
        );
    }
    Key::parse(text).or_else(|reason| mistake("alias_symbols", format!("Not usable: {reason}.")))
}
