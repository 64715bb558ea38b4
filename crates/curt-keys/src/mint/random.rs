use curt_core::{Alphabet, Key, UnwantedWords};
use rand::Rng;

use crate::settings::KeySettings;

/// Bits that choose one symbol. Every alphabet has at most 64.
const SYMBOL_BITS: u32 = 6;
const SYMBOLS_PER_WORD: u32 = u64::BITS / SYMBOL_BITS;

/// Makes random keys from the thread's generator, which is seeded by the operating system.
///
/// Symbols are chosen by rejection: six bits that name no symbol are thrown away. Taking them modulo the number of
/// symbols instead would prefer the first ones.
#[derive(Clone, Debug)]
pub struct Minter {
    alphabet: Alphabet,
    length: usize,
    unwanted: UnwantedWords,
}

impl Minter {
    /// `length` must lie between the limits for generated keys, as
    /// [`KeySettings::check`](crate::KeySettings::check) demands.
    #[must_use]
    pub fn new(alphabet: Alphabet, length: usize, unwanted: UnwantedWords) -> Self {
        Self {
            alphabet,
            length,
            unwanted,
        }
    }

    pub(crate) fn of(settings: &KeySettings) -> Self {
        let unwanted = settings.unwanted.clone();
        Self::new(settings.alphabet, settings.length, unwanted)
    }

    /// A random key that is no reserved word and holds no unwanted one.
    #[must_use]
    pub fn mint(&self) -> Key {
        self.mint_from(&mut rand::rng())
    }

    fn mint_from(&self, random: &mut impl Rng) -> Key {
        loop {
            if let Some(key) = self.draw(random)
                && self.unwanted.allow(key.as_str())
            {
                return key;
            }
        }
    }

    fn draw(&self, random: &mut impl Rng) -> Option<Key> {
        let symbols = self.alphabet.symbols();
        let mut text = [0_u8; curt_core::limits::KEY_BYTES_MAX];
        let text = text.get_mut(..self.length)?;
        let mut filled = 0;
        while filled < text.len() {
            let mut word = random.next_u64();
            for _ in 0..SYMBOLS_PER_WORD {
                let choice = usize::try_from(word & ((1 << SYMBOL_BITS) - 1)).ok()?;
                word >>= SYMBOL_BITS;
                if let (Some(&symbol), Some(place)) = (symbols.get(choice), text.get_mut(filled)) {
                    *place = symbol;
                    filled += 1;
                }
            }
        }
        Key::parse(std::str::from_utf8(text).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_have_the_asked_shape_in_every_alphabet_and_length() {
        for alphabet in Alphabet::ALL {
            for length in 4..=22 {
                let key = Minter::new(alphabet, length, UnwantedWords::default()).mint();
                assert_eq!(key.as_str().len(), length);
                assert!(
                    key.as_bytes()
                        .iter()
                        .all(|b| alphabet.symbols().contains(b))
                );
            }
        }
    }

    /// B16: a symbol's share must not depend on the symbol. With 61 degrees of freedom the statistic lies below 110
    /// with a probability of 0.9999, and taking bytes modulo 62 gives more than 1,000.
    #[test]
    fn chi_square_finds_no_bias_at_any_place() {
        const KEYS: u32 = 200_000;
        let minter = Minter::new(Alphabet::Base62, 7, UnwantedWords::default());
        let symbols = Alphabet::Base62.symbols();
        let mut counts = vec![[0_u32; 62]; 7];
        for _ in 0..KEYS {
            for (place, byte) in minter.mint().as_bytes().iter().enumerate() {
                let symbol = symbols.iter().position(|s| s == byte).unwrap();
                counts[place][symbol] += 1;
            }
        }
        let expected = f64::from(KEYS) / 62.0;
        for (place, counts) in counts.iter().enumerate() {
            let chi: f64 = counts
                .iter()
                .map(|&count| (f64::from(count) - expected).powi(2) / expected)
                .sum();
            assert!(chi < 120.0, "place {place}: chi-square {chi}");
            assert!(chi > 20.0, "place {place}: too even for chance, {chi}");
        }
    }

    #[test]
    fn a_short_space_is_covered_whole() {
        let minter = Minter::new(Alphabet::Base36, 4, UnwantedWords::default());
        let firsts: HashSet<u8> = (0..2_000).map(|_| minter.mint().as_bytes()[0]).collect();
        assert_eq!(firsts.len(), 36);
    }

    /// A generator that spells a reserved word first, then random bits.
    struct Spelling(Vec<u64>);

    impl rand::rand_core::TryRng for Spelling {
        type Error = std::convert::Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
            unreachable!("keys are drawn by 64 bits")
        }

        fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
            Ok(self.0.pop().unwrap_or_else(|| rand::rng().next_u64()))
        }

        fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Self::Error> {
            unreachable!("keys are drawn by 64 bits")
        }
    }

    #[test]
    fn reserved_words_are_never_minted() {
        let alphabet = Alphabet::Base36;
        let word = "health".bytes().rev().fold(0, |bits, byte| {
            let symbol = alphabet.symbols().iter().position(|&s| s == byte).unwrap();
            (bits << SYMBOL_BITS) | symbol as u64
        });
        let minter = Minter::new(alphabet, 6, UnwantedWords::default());
        assert_eq!(
            minter.draw(&mut Spelling(vec![word])).unwrap().as_str(),
            "health"
        );
        let key = minter.mint_from(&mut Spelling(vec![word]));
        assert_ne!(key.as_str(), "health");
    }

    #[test]
    fn unwanted_words_are_never_minted() {
        let unwanted = UnwantedWords::new(["aaa", "bab"]).unwrap();
        let minter = Minter::new(Alphabet::Base36, 4, unwanted.clone());
        let free = Minter::new(Alphabet::Base36, 4, UnwantedWords::default());
        let hits = |minter: &Minter| {
            let keys = (0..50_000).map(|_| minter.mint());
            keys.filter(|key| unwanted.are_in(key.as_str())).count()
        };
        assert_eq!(hits(&minter), 0);
        assert!(hits(&free) > 0, "chance alone spells them");
    }
}
