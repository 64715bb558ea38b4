//! Words that an operator does not want to see in a key, generated or chosen.

use std::collections::HashSet;
use std::sync::Arc;

use crate::limits::{KEY_BYTES_MAX, UNWANTED_WORD_BYTES_MIN, UNWANTED_WORDS_MAX};
use crate::reserved::is_reserved;

/// Found anywhere in a key, in either case, with digits in the place of letters that they look like, and with signs
/// between the letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwantedWords {
    /// As they are compared.
    words: Arc<HashSet<Box<[u8]>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnwantedWordError {
    #[error("{0:?}: use letters and digits, {UNWANTED_WORD_BYTES_MIN} to {KEY_BYTES_MAX} of them")]
    Word(String),
    #[error("more than {UNWANTED_WORDS_MAX} words")]
    TooMany,
}

impl UnwantedWords {
    pub fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, UnwantedWordError> {
        let words: HashSet<Box<[u8]>> = words
            .into_iter()
            .map(|word| {
                let length = UNWANTED_WORD_BYTES_MIN..=KEY_BYTES_MAX;
                let is_word = word.bytes().all(|byte| byte.is_ascii_alphanumeric());
                match is_word && length.contains(&word.len()) {
                    true => Ok(compared(word).into()),
                    false => Err(UnwantedWordError::Word(word.to_owned())),
                }
            })
            .collect::<Result<_, _>>()?;
        match words.len() {
            0..=UNWANTED_WORDS_MAX => Ok(Self {
                words: Arc::new(words),
            }),
            _ => Err(UnwantedWordError::TooMany),
        }
    }

    /// Whether one of the words is in the key.
    #[must_use]
    pub fn are_in(&self, key: &str) -> bool {
        if self.words.is_empty() {
            return false;
        }
        // A key has few parts, and there may be many words.
        let text = compared(key);
        (0..text.len())
            .any(|start| (start + 1..=text.len()).any(|end| self.words.contains(&text[start..end])))
    }

    /// Whether a generated key may be given away: it is no word of ours, and holds none of these.
    #[must_use]
    pub fn allow(&self, key: &str) -> bool {
        !is_reserved(key) && !self.are_in(key)
    }
}

fn compared(text: &str) -> Vec<u8> {
    let letters = text.bytes().filter(u8::is_ascii_alphanumeric);
    letters
        .map(|byte| match byte.to_ascii_lowercase() {
            b'0' => b'o',
            b'1' | b'l' => b'i',
            b'2' => b'z',
            b'3' => b'e',
            b'4' => b'a',
            b'5' => b's',
            b'6' | b'9' => b'g',
            b'7' => b't',
            b'8' => b'b',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_however_they_are_spelled() {
        let words = UnwantedWords::new(["Badly", "rude"]).unwrap();
        for key in ["badly", "xBADLYx", "8AdLy77", "b4d1y", "b-a-d_l.y", "aRud3"] {
            assert!(words.are_in(key), "{key}");
            assert!(!words.allow(key), "{key}");
        }
        for key in ["bad", "bald", "rud", "r-u-d", "Xk29aQ7", ""] {
            assert!(!words.are_in(key), "{key}");
        }
        assert!(!UnwantedWords::default().are_in("badly"));
    }

    #[test]
    fn words_of_the_server_are_never_generated() {
        assert!(!UnwantedWords::default().allow("health"));
        assert!(UnwantedWords::default().allow("healthy"));
    }

    #[test]
    fn what_is_no_word_is_refused() {
        for word in ["", "ab", "two words", "süß", &"a".repeat(65)] {
            let refused = UnwantedWords::new(["fine", word]);
            assert_eq!(refused, Err(UnwantedWordError::Word(word.to_owned())));
        }
        let many: Vec<String> = (0..=UNWANTED_WORDS_MAX)
            .map(|n| format!("w{n:06}y"))
            .collect();
        assert!(
            UnwantedWords::new(many.iter().map(String::as_str)).is_ok(),
            "look-alikes are one"
        );
        let letters = |mut n: usize| -> String {
            let next = |_| {
                let letter = char::from(b"abcdefhjkm"[n % 10]);
                n /= 10;
                letter
            };
            (0..6).map(next).collect()
        };
        let many: Vec<String> = (0..=UNWANTED_WORDS_MAX).map(letters).collect();
        let refused = UnwantedWords::new(many.iter().map(String::as_str));
        assert_eq!(refused, Err(UnwantedWordError::TooMany));
    }
}
