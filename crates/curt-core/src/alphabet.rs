//! The symbol sets that generated keys are written in.

use std::fmt;
use std::str::FromStr;

use crate::key::Key;
use crate::limits::GENERATED_KEY_BYTES_MAX;

/// An ordered set of symbols. The order is part of the stored format: sequences, ids and key files decode by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Alphabet {
    /// `0-9 a-z`
    Base36,
    /// `0-9 A-Z a-z`
    Base62,
    /// `A-Z a-z 0-9 - _`
    Base64Url,
    /// `a-z 0-9 A-Z . _`
    Base64Dot,
}

const BASE36: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE64_URL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE64_DOT: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ._";

impl Alphabet {
    pub const ALL: [Self; 4] = [Self::Base36, Self::Base62, Self::Base64Url, Self::Base64Dot];

    #[must_use]
    pub fn symbols(self) -> &'static [u8] {
        match self {
            Self::Base36 => BASE36,
            Self::Base62 => BASE62,
            Self::Base64Url => BASE64_URL,
            Self::Base64Dot => BASE64_DOT,
        }
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Base36 => "base36",
            Self::Base62 => "base62",
            Self::Base64Url => "base64url",
            Self::Base64Dot => "base64dot",
        }
    }

    /// How many keys of `width` symbols there are; `None` past 128 bits.
    #[must_use]
    pub fn space(self, width: usize) -> Option<u128> {
        let base = self.symbols().len() as u128;
        base.checked_pow(u32::try_from(width).ok()?)
    }

    /// The fewest symbols that can write every number below `2^bits`.
    #[must_use]
    pub fn width_for_bits(self, bits: u32) -> usize {
        let wanted = 1_u128 << bits.min(127);
        (1..=GENERATED_KEY_BYTES_MAX)
            .find(|&width| self.space(width).is_none_or(|space| space >= wanted))
            .unwrap_or(GENERATED_KEY_BYTES_MAX)
    }

    /// Writes `number` in exactly `width` symbols, most significant first. `None` when it does not fit.
    #[must_use]
    pub fn encode(self, number: u128, width: usize) -> Option<Key> {
        if width == 0 || width > GENERATED_KEY_BYTES_MAX {
            return None;
        }
        let symbols = self.symbols();
        let base = symbols.len() as u128;
        let mut out = [0_u8; GENERATED_KEY_BYTES_MAX];
        let mut rest = number;
        for place in out[..width].iter_mut().rev() {
            *place = symbols[usize::try_from(rest % base).ok()?];
            rest /= base;
        }
        if rest != 0 {
            return None;
        }
        Key::parse(std::str::from_utf8(&out[..width]).ok()?).ok()
    }

    /// The number that `text` writes. `None` for a foreign symbol or past 128 bits.
    #[must_use]
    pub fn decode(self, text: &str) -> Option<u128> {
        let symbols = self.symbols();
        let base = symbols.len() as u128;
        text.bytes().try_fold(0_u128, |number, byte| {
            let digit = symbols.iter().position(|&symbol| symbol == byte)? as u128;
            number.checked_mul(base)?.checked_add(digit)
        })
    }
}

impl fmt::Display for Alphabet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name is not one of an alphabet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown alphabet {0:?}: use base36, base62, base64url or base64dot")]
pub struct UnknownAlphabet(String);

impl FromStr for Alphabet {
    type Err = UnknownAlphabet;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|alphabet| alphabet.name() == name)
            .ok_or_else(|| UnknownAlphabet(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alphabet_has_distinct_symbols_that_keys_allow() {
        for alphabet in Alphabet::ALL {
            let mut seen = alphabet.symbols().to_vec();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), alphabet.symbols().len(), "{alphabet}");
            for &symbol in alphabet.symbols() {
                assert!(Key::parse(&format!("a{}", symbol as char)).is_ok());
            }
            assert_eq!(alphabet.name().parse(), Ok(alphabet));
        }
    }

    #[test]
    fn golden_encodings_never_change() {
        let encoded = |alphabet: Alphabet, number, width| {
            alphabet.encode(number, width).map(|key| key.to_string())
        };
        assert_eq!(encoded(Alphabet::Base62, 0, 7).as_deref(), Some("0000000"));
        assert_eq!(
            encoded(Alphabet::Base62, 3_521_614_606_207, 7).as_deref(),
            Some("zzzzzzz")
        );
        assert_eq!(encoded(Alphabet::Base62, 3_521_614_606_208, 7), None);
        assert_eq!(
            encoded(Alphabet::Base64Url, (1 << 48) - 1, 8).as_deref(),
            Some("________")
        );
        assert_eq!(
            encoded(Alphabet::Base64Dot, 62, 8).as_deref(),
            Some("aaaaaaa.")
        );
        assert_eq!(
            encoded(Alphabet::Base36, 1_000_000, 6).as_deref(),
            Some("00lfls")
        );
    }

    #[test]
    fn widths_for_48_bits() {
        assert_eq!(Alphabet::Base64Url.width_for_bits(48), 8);
        assert_eq!(Alphabet::Base62.width_for_bits(48), 9);
        assert_eq!(Alphabet::Base36.width_for_bits(48), 10);
    }

    proptest::proptest! {
        #[test]
        fn decode_undoes_encode(number in 0_u128..1 << 64, which in 0_usize..4) {
            let alphabet = Alphabet::ALL[which];
            let key = alphabet.encode(number, 22).unwrap();
            proptest::prop_assert_eq!(alphabet.decode(key.as_str()), Some(number));
        }
    }
}
