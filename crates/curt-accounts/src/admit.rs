//! The door: what a person, a key and a password may be called. Everything is looked at before anything is refused,
//! so that somebody who made three mistakes hears of three.

use curt_core::limits::{EMAIL_BYTES_MAX, NAME_BYTES_MAX, PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN};

/// One mistake in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field as the request names it.
    pub field: &'static str,
    /// Stable, for programs.
    pub code: &'static str,
    /// One sentence, for people.
    pub message: String,
}

impl FieldError {
    #[must_use]
    pub fn new(field: &'static str, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            field,
            code,
            message: message.into(),
        }
    }
}

/// A name without spaces around it; it may be empty.
pub(crate) fn name(field: &'static str, text: &str) -> Result<Box<str>, FieldError> {
    let name = text.trim_matches(' ');
    if name.len() > NAME_BYTES_MAX {
        let most = format!("a name has at most {NAME_BYTES_MAX} bytes");
        Err(FieldError::new(field, "too_long", most))
    } else if name.chars().any(char::is_control) {
        let why = "a name must not hold control characters";
        Err(FieldError::new(field, "control_character", why))
    } else {
        Ok(name.into())
    }
}

pub(crate) fn required_name(field: &'static str, text: &str) -> Result<Box<str>, FieldError> {
    let name = name(field, text)?;
    if name.is_empty() {
        return Err(FieldError::new(field, "required", "must not be empty"));
    }
    Ok(name)
}

/// An email in the form in which it is compared: without spaces around it, ASCII letters in lower case.
pub(crate) fn email(text: &str) -> Result<Box<str>, FieldError> {
    let email = folded_email(text);
    let refused = |code, why: &str| Err(FieldError::new("email", code, why));
    if email.is_empty() {
        return refused("required", "must not be empty");
    }
    if email.len() > EMAIL_BYTES_MAX {
        return refused("too_long", "an email has at most 254 bytes");
    }
    let has_form = email.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !domain.is_empty() && !domain.contains('@')
    });
    if !has_form || email.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return refused("not_an_email", "write it as name@example.com");
    }
    Ok(email.into())
}

/// As [`email`], for look-ups: what is not an email is nobody's.
pub(crate) fn folded_email(text: &str) -> String {
    text.trim_matches(' ').to_ascii_lowercase()
}

pub(crate) fn password(text: &str, email: &str) -> Result<(), FieldError> {
    let refused = |code, why: String| Err(FieldError::new("password", code, why));
    if text.chars().count() < PASSWORD_CHARS_MIN {
        let least = format!("a password has at least {PASSWORD_CHARS_MIN} characters");
        return refused("too_short", least);
    }
    if text.len() > PASSWORD_BYTES_MAX {
        let most = format!("a password has at most {PASSWORD_BYTES_MAX} bytes");
        return refused("too_long", most);
    }
    if folded_email(text) == email {
        return refused("is_email", "the password must not be the email".to_owned());
    }
    Ok(())
}

/// Collects mistakes while the look goes on.
#[derive(Default)]
pub(crate) struct Mistakes(Vec<FieldError>);

impl Mistakes {
    pub(crate) fn note<T>(&mut self, looked_at: Result<T, FieldError>) -> Option<T> {
        looked_at.map_err(|mistake| self.0.push(mistake)).ok()
    }

    pub(crate) fn into_vec(self) -> Vec<FieldError> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(looked_at: Result<T, FieldError>) -> &'static str {
        looked_at.err().map_or("fine", |mistake| mistake.code)
    }

    #[test]
    fn names_are_short_lines() {
        assert_eq!(&*name("name", "  Ann's phone ").unwrap(), "Ann's phone");
        assert_eq!(code(required_name("name", "Zoë")), "fine");
        assert_eq!(code(name("name", " ")), "fine");
        assert_eq!(code(required_name("name", " ")), "required");
        assert_eq!(code(name("name", &"a".repeat(100))), "fine");
        assert_eq!(code(name("name", &"a".repeat(101))), "too_long");
        for text in ["a\nb", "a\0", "\ta", "a\u{7f}", "a\u{85}b", "a\u{1b}[31m"] {
            assert_eq!(code(name("name", text)), "control_character", "{text:?}");
        }
    }

    #[test]
    fn emails_are_folded_and_have_one_at() {
        assert_eq!(&*email(" Ann@Example.COM ").unwrap(), "ann@example.com");
        assert_eq!(code(email("operator@localhost")), "fine");
        for text in [
            "ann",
            "@b",
            "a@",
            "a@b@c",
            "a b@c",
            "a@b\tc",
            "a@b\n",
            "a\u{2003}@b",
        ] {
            assert_eq!(code(email(text)), "not_an_email", "{text:?}");
        }
        assert_eq!(code(email("")), "required");
        assert_eq!(code(email(&format!("{}@b.c", "a".repeat(250)))), "fine");
        assert_eq!(code(email(&format!("{}@b.c", "a".repeat(251)))), "too_long");
    }

    #[test]
    fn passwords_are_counted_in_characters_and_are_not_the_email() {
        assert_eq!(code(password("äöüßéèêë", "a@b.c")), "fine");
        assert_eq!(code(password("äöüßéèê", "a@b.c")), "too_short");
        assert_eq!(code(password(&"a".repeat(256), "a@b.c")), "fine");
        assert_eq!(code(password(&"a".repeat(257), "a@b.c")), "too_long");
        assert_eq!(
            code(password("Ann@Example.com", "ann@example.com")),
            "is_email"
        );
    }
}
