//! The written form of an API key: `curt_`, eight symbols to find the row by, `_`, thirty-two symbols that are secret.
//!
//! The fixed first part lets secret scanners recognise a leaked key. The secret has 190 random bits, so a plain
//! SHA-256 of it is enough at rest.

use std::fmt;

use curt_core::Alphabet;
use rand::RngExt;
use sha2::{Digest, Sha256};

const BRAND: &str = "curt_";
const PREFIX_LEN: usize = 8;
const SECRET_LEN: usize = 32;

/// An API key as its holder has it. Its `Debug` form hides the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    text: String,
}

impl Token {
    #[must_use]
    pub fn generate() -> Self {
        let mut text = String::with_capacity(BRAND.len() + PREFIX_LEN + 1 + SECRET_LEN);
        text.push_str(BRAND);
        push_symbols(&mut text, PREFIX_LEN);
        text.push('_');
        push_symbols(&mut text, SECRET_LEN);
        Self { text }
    }

    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.text[BRAND.len()..BRAND.len() + PREFIX_LEN]
    }

    pub(crate) fn secret_hash(&self) -> [u8; 32] {
        secret_hash(&self.text[BRAND.len() + PREFIX_LEN + 1..])
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({BRAND}{}_…)", self.prefix())
    }
}

/// Prefix and secret of a text that has the form of a token.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix(BRAND)?;
    let (prefix, secret) = rest.split_once('_')?;
    let has_form = prefix.len() == PREFIX_LEN && secret.len() == SECRET_LEN;
    let is_base62 = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (has_form && is_base62(prefix) && is_base62(secret)).then_some((prefix, secret))
}

pub(crate) fn secret_hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

fn push_symbols(text: &mut String, count: usize) {
    let symbols = Alphabet::Base62.symbols();
    let mut rng = rand::rng();
    text.extend((0..count).map(|_| char::from(symbols[rng.random_range(0..symbols.len())])));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_the_documented_form_and_parses() {
        let token = Token::generate();
        let text = token.reveal();
        assert_eq!(text.len(), "curt_".len() + 8 + 1 + 32);
        let (prefix, secret) = split(text).unwrap();
        assert_eq!(prefix, token.prefix());
        assert_eq!(secret_hash(secret), token.secret_hash());
        assert_ne!(Token::generate(), token);
    }

    #[test]
    fn debug_hides_the_secret() {
        let token = Token::generate();
        let (_, secret) = split(token.reveal()).unwrap();
        let shown = format!("{token:?}");
        assert!(shown.contains(token.prefix()));
        assert!(!shown.contains(secret));
        assert!((0..SECRET_LEN - 3).all(|at| !shown.contains(&secret[at..at + 4])));
    }

    #[test]
    fn other_texts_are_not_tokens() {
        let good = Token::generate().text;
        let short = &good[..good.len() - 1];
        let long = format!("{good}a");
        let upper = good.to_uppercase();
        let symbol = format!("{}!", &good[..good.len() - 1]);
        let spaced = format!(" {good}");
        for text in [
            "", "curt_", "curt__", "_", short, &long, &upper, &symbol, &spaced, "ä",
        ] {
            assert_eq!(split(text), None, "{text:?}");
        }
    }
}
