//! What a person may choose as a key.

use curt_core::limits::KEY_BYTES_MAX;
use curt_core::{Field, FieldError, Key, KeyOrigin, KeyRefusal, KeyRules};

pub(super) fn admit(text: &str, rules: &KeyRules) -> Result<Key, FieldError> {
    let mistake = |code, message: String| Err(FieldError::new(Field::Alias, code, message));
    match rules.check(text, KeyOrigin::Alias) {
        Ok(()) => {}
        Err(KeyRefusal::Length) if text.is_empty() => {
            return mistake("alias_empty", "An alias must not be empty.".into());
        }
        Err(KeyRefusal::Length) => {
            return mistake(
                "alias_too_long",
                format!("An alias has at most {KEY_BYTES_MAX} characters."),
            );
        }
        Err(KeyRefusal::Alphabet) => {
            return mistake(
                "alias_symbols",
                "An alias may hold only letters, digits, '-' and '_'.".into(),
            );
        }
        Err(KeyRefusal::Reserved) => {
            return mistake(
                "alias_reserved",
                "This alias is reserved: choose another one.".into(),
            );
        }
        Err(KeyRefusal::Unwanted) => {
            return mistake(
                "alias_unwanted",
                "This alias holds a word that is not wanted here: choose another one.".into(),
            );
        }
    }
    Key::parse(text).or_else(|reason| mistake("alias_symbols", format!("Not usable: {reason}.")))
}
