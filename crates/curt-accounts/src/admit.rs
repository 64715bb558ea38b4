//! The door: what a person, a key and a password may be called. Everything is looked at before anything is refused,
//! so that somebody who made three mistakes hears of three.

use curt_core::limits::{EMAIL_BYTES_MAX, NAME_BYTES_MAX, PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN};
use curt_core::{Field, FieldError};
use unicode_normalization::UnicodeNormalization as _;

use crate::users::OPERATOR_EMAIL;

/// A name without spaces around it; it may be empty.
pub(crate) fn name(field: Field, text: &str) -> Result<Box<str>, FieldError> {
    let name = text.trim_matches(' ');
    if name.len() > NAME_BYTES_MAX {
        let most = format!("A name has at most {NAME_BYTES_MAX} bytes.");
        Err(FieldError::new(field, "too_long", most))
    } else if name.chars().any(|c| c.is_control() || is_reordering(c)) {
        let why = "A name must not hold control characters.";
        Err(FieldError::new(field, "control_character", why))
    } else {
        Ok(name.into())
    }
}

pub(crate) fn required_name(field: Field, text: &str) -> Result<Box<str>, FieldError> {
    let name = name(field, text)?;
    if name.is_empty() {
        return Err(FieldError::new(field, "required", "Must not be empty."));
    }
    Ok(name)
}

/// Whether the character breaks lines or turns the direction of others around, so that a list shows what is not there.
fn is_reordering(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Whether nothing is to be seen of the character (the categories Cf and Default_Ignorable of Unicode): two texts that
/// differ by such alone look alike.
#[rustfmt::skip]
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{600}'..='\u{605}' | '\u{61C}' | '\u{6DD}' | '\u{70F}' | '\u{890}'..='\u{891}'
        | '\u{8E2}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{110BD}' | '\u{110CD}'
        | '\u{13430}'..='\u{1343F}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// An email in the form in which it is compared: without spaces around it, compatible characters as one (NFKC), in
/// lower case. The operator's is nobody else's.
pub(crate) fn email(text: &str) -> Result<Box<str>, FieldError> {
    let email = normalized_email(text);
    let refused = |code, why: &str| Err(FieldError::new(Field::Email, code, why));
    if email.is_empty() {
        return refused("required", "Must not be empty.");
    }
    if email.len() > EMAIL_BYTES_MAX {
        return refused("too_long", "An email has at most 254 bytes.");
    }
    let has_form = email.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !domain.is_empty() && !domain.contains('@')
    });
    if !has_form || email.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return refused("not_an_email", "Write it as name@example.com.");
    }
    if text.chars().chain(email.chars()).any(is_invisible) {
        return refused(
            "invisible_character",
            "It holds characters that cannot be seen.",
        );
    }
    if email == OPERATOR_EMAIL {
        return refused("reserved", "This is the operator's.");
    }
    Ok(email.into())
}

/// As [`email`], for look-ups: what is not an email is nobody's.
pub(crate) fn normalized_email(text: &str) -> String {
    if text.is_ascii() {
        return ascii_normalized_email(text);
    }
    // Lower case can undo the normal form, as the Kelvin sign shows.
    let normal: String = text.trim_matches(' ').nfkc().collect();
    normal.to_lowercase().nfkc().collect()
}

/// As emails were compared at first.
pub(crate) fn ascii_normalized_email(text: &str) -> String {
    text.trim_matches(' ').to_ascii_lowercase()
}

pub(crate) fn password(text: &str, email: &str) -> Result<(), FieldError> {
    let refused = |code, why: String| Err(FieldError::new(Field::Password, code, why));
    if text.chars().count() < PASSWORD_CHARS_MIN {
        let least = format!("A password has at least {PASSWORD_CHARS_MIN} characters.");
        return refused("too_short", least);
    }
    if text.len() > PASSWORD_BYTES_MAX {
        let most = format!("A password has at most {PASSWORD_BYTES_MAX} bytes.");
        return refused("too_long", most);
    }
    if normalized_email(text) == email {
        return refused("is_email", "The password must not be the email.".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(looked_at: Result<T, FieldError>) -> &'static str {
        looked_at.err().map_or("fine", |mistake| mistake.code)
    }

    #[test]
    fn names_are_short_lines() {
        assert_eq!(
            &*name(Field::Name, "  Ann's phone ").unwrap(),
            "Ann's phone"
        );
        assert_eq!(code(required_name(Field::Name, "Zoë")), "fine");
        assert_eq!(code(name(Field::Name, " ")), "fine");
        assert_eq!(code(required_name(Field::Name, " ")), "required");
        assert_eq!(code(name(Field::Name, &"a".repeat(100))), "fine");
        assert_eq!(code(name(Field::Name, &"a".repeat(101))), "too_long");
        for text in ["a\nb", "a\0", "\ta", "a\u{7f}", "a\u{85}b", "a\u{1b}[31m"] {
            assert_eq!(
                code(name(Field::Name, text)),
                "control_character",
                "{text:?}"
            );
        }
    }

    #[test]
    fn emails_are_folded_and_have_one_at() {
        assert_eq!(&*email(" Ann@Example.COM ").unwrap(), "ann@example.com");
        assert_eq!(code(email("operator@localhost")), "reserved");
        assert_eq!(code(email(" Operator@LocalHost")), "reserved");
        assert_eq!(code(email("ops@localhost")), "fine");
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
    fn emails_that_look_alike_are_one_or_refused() {
        for (text, folded) in [
            ("\u{212A}elvin@x.y", "kelvin@x.y"),
            ("ＡＤＭＩＮ＠x.y", "admin@x.y"),
            ("zoe\u{308}@x.y", "zo\u{eb}@x.y"),
            ("ZO\u{CB}@x.y", "zo\u{eb}@x.y"),
            ("o\u{fb03}ce@x.y", "office@x.y"),
        ] {
            assert_eq!(&*email(text).unwrap(), folded, "{text:?}");
            assert_eq!(normalized_email(folded), folded, "{text:?}");
        }
        for hidden in [
            '\u{200B}',
            '\u{202E}',
            '\u{FEFF}',
            '\u{AD}',
            '\u{200D}',
            '\u{2066}',
            '\u{E0041}',
            '\u{FE0F}',
        ] {
            let text = format!("admin{hidden}@x.y");
            assert_eq!(code(email(&text)), "invisible_character", "{text:?}");
        }
        assert_eq!(code(name(Field::Name, "a\u{202E}b")), "control_character");
        assert_eq!(
            code(name(Field::Name, "\u{1F468}\u{200D}\u{1F4BB}")),
            "fine"
        );
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
