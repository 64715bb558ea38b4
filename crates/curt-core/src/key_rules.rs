//! What a key must be like to be given to a link.

use crate::alphabet::Alphabet;
use crate::limits::{GENERATED_KEY_BYTES_MAX, GENERATED_KEY_BYTES_MIN, KEY_BYTES_MAX};
use crate::link::KeyOrigin;
use crate::reserved::is_reserved;
use crate::unwanted::UnwantedWords;

/// The one check between a key and a link, whatever made the key. Engines and files are read by others too, and settings
/// change: a key that was right when it was minted need not be right when a link gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRules {
    unwanted: UnwantedWords,
    /// Of generated keys. `None`: every symbol that a key may hold.
    alphabet: Option<Alphabet>,
}

/// Why a key is not given to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyRefusal {
    Length,
    Alphabet,
    Reserved,
    Unwanted,
}

impl KeyRefusal {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Alphabet => "alphabet",
            Self::Reserved => "reserved",
            Self::Unwanted => "unwanted",
        }
    }
}

impl KeyRules {
    #[must_use]
    pub fn new(alphabet: Alphabet, unwanted: UnwantedWords) -> Self {
        Self {
            unwanted,
            alphabet: Some(alphabet),
        }
    }

    /// Whether a link may get this key. Aliases hold letters, digits, `-` and `_`: a dot would look like a file.
    pub fn check(&self, key: &str, origin: KeyOrigin) -> Result<(), KeyRefusal> {
        let lengths = match origin {
            KeyOrigin::Alias => 1..=KEY_BYTES_MAX,
            _ if self.alphabet.is_none() => 1..=KEY_BYTES_MAX,
            _ => GENERATED_KEY_BYTES_MIN..=GENERATED_KEY_BYTES_MAX,
        };
        if !lengths.contains(&key.len()) {
            return Err(KeyRefusal::Length);
        }
        let symbols = match (origin, self.alphabet) {
            (KeyOrigin::Alias, _) => Some(Alphabet::Base64Url.symbols()),
            (_, alphabet) => alphabet.map(Alphabet::symbols),
        };
        if symbols.is_some_and(|symbols| !key.bytes().all(|byte| symbols.contains(&byte))) {
            return Err(KeyRefusal::Alphabet);
        }
        if is_reserved(key) {
            return Err(KeyRefusal::Reserved);
        }
        if self.unwanted.are_in(key) {
            return Err(KeyRefusal::Unwanted);
        }
        Ok(())
    }

    /// Whether keys can be right when they are minted and wrong later, because words came to be unwanted.
    #[must_use]
    pub fn has_unwanted_words(&self) -> bool {
        self.unwanted != UnwantedWords::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_a_key_is_checked() {
        let unwanted = UnwantedWords::new(["rude"]).unwrap();
        let rules = KeyRules::new(Alphabet::Base62, unwanted);
        let long = "a".repeat(23);
        for (key, expected) in [
            ("abc", Err(KeyRefusal::Length)),
            (&*long, Err(KeyRefusal::Length)),
            ("abc-123", Err(KeyRefusal::Alphabet)),
            ("index.html", Err(KeyRefusal::Alphabet)),
            ("Health", Err(KeyRefusal::Reserved)),
            ("xRud3x1", Err(KeyRefusal::Unwanted)),
            ("abcd", Ok(())),
            ("Xk29aQ7", Ok(())),
        ] {
            for origin in KeyOrigin::ALL {
                if origin != KeyOrigin::Alias {
                    assert_eq!(rules.check(key, origin), expected, "{key} {origin:?}");
                }
            }
        }
        for (alias, expected) in [
            ("a", Ok(())),
            ("spring-sale", Ok(())),
            ("sale.html", Err(KeyRefusal::Alphabet)),
            ("api", Err(KeyRefusal::Reserved)),
            ("r-u-d-e", Err(KeyRefusal::Unwanted)),
            ("", Err(KeyRefusal::Length)),
        ] {
            assert_eq!(rules.check(alias, KeyOrigin::Alias), expected, "{alias}");
        }
    }

    #[test]
    fn without_settings_words_of_the_server_are_refused_all_the_same() {
        let rules = KeyRules::default();
        assert_eq!(
            rules.check("api", KeyOrigin::Ledger),
            Err(KeyRefusal::Reserved)
        );
        assert_eq!(rules.check("k1", KeyOrigin::Ledger), Ok(()));
        assert!(!rules.has_unwanted_words());
    }
}
