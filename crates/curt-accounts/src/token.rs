//! The written form of what people show: a brand, symbols to find the row by, `_`, thirty-two symbols that are secret.
//!
//! An API key is `curt_XXXXXXXX_…`, a session `curts_XXXXXXXXXXXXXXXX_…`. The fixed first part lets secret scanners
//! recognise a leaked one. The secret has 190 random bits, so a plain SHA-256 of it is enough at rest.

use std::fmt;

use curt_core::Alphabet;
use rand::RngExt;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const SECRET_LEN: usize = 32;

pub(crate) const API_KEY: TokenKind = TokenKind {
    brand: "curt_",
    id_len: 8,
};
pub(crate) const SESSION: TokenKind = TokenKind {
    brand: "curts_",
    id_len: 16,
};

/// What a browser keeps after its session, to be known again. Its secret is a proof, and not random.
pub(crate) const BROWSER: TokenKind = TokenKind {
    brand: "curtb_",
    id_len: 16,
};

/// How the tokens of one kind look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenKind {
    brand: &'static str,
    id_len: usize,
}

impl TokenKind {
    pub(crate) fn generate(self) -> Token {
        let id = symbols(self.id_len);
        let text = format!("{}{id}_{}", self.brand, symbols(SECRET_LEN));
        Token { form: self, text }
    }

    /// A token with a new id and the secret that `prove` gives it.
    pub(crate) fn generate_with(self, prove: impl FnOnce(&str) -> String) -> Token {
        let id = symbols(self.id_len);
        let text = format!("{}{id}_{}", self.brand, prove(&id));
        Token { form: self, text }
    }

    /// Id and secret of a text that has this form.
    pub(crate) fn split(self, text: &str) -> Option<(&str, &str)> {
        let rest = text.strip_prefix(self.brand)?;
        let (id, secret) = rest.split_once('_')?;
        let has_form = id.len() == self.id_len && secret.len() == SECRET_LEN;
        (has_form && is_base62(id) && is_base62(secret)).then_some((id, secret))
    }
}

/// An API key or a session as its holder has it. Its `Debug` form hides the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    form: TokenKind,
    text: String,
}

impl Token {
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The public part.
    #[must_use]
    pub fn id(&self) -> &str {
        let start = self.form.brand.len();
        &self.text[start..start + self.form.id_len]
    }

    pub(crate) fn secret_hash(&self) -> [u8; 32] {
        hash(&self.text[self.text.len() - SECRET_LEN..])
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}{}_…)", self.form.brand, self.id())
    }
}

/// A secret that needs no row to be found by: the code of an invitation, the token of a setup.
pub(crate) fn secret() -> String {
    symbols(SECRET_LEN)
}

pub(crate) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Compares in the same time for every pair. Without a stored hash it compares with one that nothing has, so that the
/// time does not tell what is unknown from what is wrong.
pub(crate) fn matches(stored: Option<&[u8; 32]>, shown: &[u8; 32]) -> bool {
    let equal = bool::from(stored.unwrap_or(&[0; 32]).ct_eq(shown));
    stored.is_some() && equal
}

pub(crate) fn symbols(count: usize) -> String {
    let symbols = Alphabet::Base62.symbols();
    let mut rng = rand::rng();
    (0..count)
        .map(|_| char::from(symbols[rng.random_range(0..symbols.len())]))
        .collect()
}

fn is_base62(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_the_documented_form_and_parses() {
        for (form, length) in [(API_KEY, 5 + 8 + 1 + 32), (SESSION, 6 + 16 + 1 + 32)] {
            let token = form.generate();
            assert_eq!(token.reveal().len(), length);
            let (id, secret) = form.split(token.reveal()).unwrap();
            assert_eq!(id, token.id());
            assert_eq!(hash(secret), token.secret_hash());
            assert_ne!(form.generate(), token);
        }
    }

    #[test]
    fn one_form_is_not_taken_for_the_other() {
        assert_eq!(SESSION.split(API_KEY.generate().reveal()), None);
        assert_eq!(API_KEY.split(SESSION.generate().reveal()), None);
    }

    #[test]
    fn debug_hides_the_secret() {
        let token = API_KEY.generate();
        let (_, secret) = API_KEY.split(token.reveal()).unwrap();
        let shown = format!("{token:?}");
        assert!(shown.contains(token.id()));
        assert!((0..SECRET_LEN - 3).all(|at| !shown.contains(&secret[at..at + 4])));
    }

    #[test]
    fn other_texts_are_not_tokens() {
        let good = API_KEY.generate().text;
        let short = &good[..good.len() - 1];
        let long = format!("{good}a");
        let upper = good.to_uppercase();
        let symbol = format!("{}!", &good[..good.len() - 1]);
        let spaced = format!(" {good}");
        for text in [
            "", "curt_", "curt__", "_", short, &long, &upper, &symbol, &spaced, "ä",
        ] {
            assert_eq!(API_KEY.split(text), None, "{text:?}");
        }
    }

    #[test]
    fn nothing_matches_the_absent() {
        assert!(!matches(None, &[0; 32]));
        assert!(matches(Some(&[7; 32]), &[7; 32]));
        assert!(!matches(Some(&[7; 32]), &[8; 32]));
    }

    #[test]
    fn mutated_tokens_have_the_exact_form_or_are_refused() {
        let forms = [API_KEY, SESSION, BROWSER];
        let samples: Vec<String> = forms
            .iter()
            .map(|form| {
                form.brand.to_owned() + &"a".repeat(form.id_len) + "_" + &"Z".repeat(SECRET_LEN)
            })
            .collect();
        let fuzz = curt_testkit::fuzz::Fuzz::new("tokens", samples)
            .with_words(["curt_", "curts_", "curtb_", "_", "\u{e4}"]);
        fuzz.run_texts(|text| {
            let split: Vec<(&str, &str)> =
                forms.iter().filter_map(|form| form.split(text)).collect();
            for (id, secret) in &split {
                let form = forms
                    .iter()
                    .find(|form| form.id_len == id.len() && text.starts_with(form.brand));
                let brand = form.expect("one of the forms").brand;
                assert_eq!(format!("{brand}{id}_{secret}"), text);
                assert!(is_base62(id) && is_base62(secret) && secret.len() == SECRET_LEN);
            }
            assert!(split.len() <= 1, "two forms");
            !split.is_empty()
        });
    }
}
