//! The keys that a load asks for, and in which order.

use std::sync::Arc;

use curt_core::{Alphabet, Key};

use crate::random::Random;
use crate::zipf::Zipf;

/// Keys packed into one block of memory: a million of them cost eleven bytes each and no pointer chase.
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl KeySet {
    /// `count` different generated-looking keys of `width` base-62 symbols, the same for the same seed.
    ///
    /// An odd multiplier walks the key space without meeting itself, so they are distinct without a set of those
    /// already drawn.
    #[must_use]
    pub fn generated(count: u32, width: usize, seed: u64) -> Self {
        let space = Alphabet::Base62.space(width).unwrap_or(u128::MAX);
        // A prime near 0.618 of 62^7 that divides no power of 62; consecutive keys land far apart.
        const STRIDE: u128 = 2_176_477_521_763;
        let start = u128::from(Random::new(seed).next_u64()) % space;
        (0..u128::from(count))
            .filter_map(|place| Alphabet::Base62.encode((start + place * STRIDE) % space, width))
            .map(|key| key.as_str().to_owned())
            .collect()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The key at `index`; empty when there is none.
    #[must_use]
    pub fn get(&self, index: usize) -> &[u8] {
        let Some(&end) = self.ends.get(index) else {
            return &[];
        };
        let start = match index {
            0 => 0,
            _ => self.ends[index - 1],
        };
        &self.bytes[start as usize..end as usize]
    }

    /// The first `count` keys.
    #[must_use]
    pub fn prefix(&self, count: usize) -> Self {
        (0..count.min(self.len())).map(|at| self.text(at)).collect()
    }

    /// The key at `index` as text.
    #[must_use]
    pub fn text(&self, index: usize) -> String {
        String::from_utf8_lossy(self.get(index)).into_owned()
    }

    /// The key at `index` as the product's own type.
    #[must_use]
    pub fn key(&self, index: usize) -> Option<Key> {
        Key::parse(std::str::from_utf8(self.get(index)).ok()?).ok()
    }
}

impl<T: AsRef<str>> FromIterator<T> for KeySet {
    fn from_iter<I: IntoIterator<Item = T>>(keys: I) -> Self {
        let mut set = Self::default();
        for key in keys {
            set.bytes.extend_from_slice(key.as_ref().as_bytes());
            set.ends.push(set.bytes.len() as u32);
        }
        set
    }
}

/// Which key comes next.
#[derive(Clone, Debug)]
pub enum Pick {
    /// Each key in turn: warms a cache with exactly one request per key.
    InOrder,
    /// Every key equally often.
    Uniform,
    /// By popularity; a key's rank is its place in the set.
    Zipf(Arc<Zipf>),
}

impl Pick {
    /// The mix of the comparisons: Zipf with exponent 1 over all of `keys`.
    #[must_use]
    pub fn zipf(keys: &KeySet) -> Self {
        Self::Zipf(Arc::new(Zipf::new(keys.len() as u32, 1.0)))
    }
}

/// An endless sequence of places in a [`KeySet`].
#[derive(Clone, Debug)]
pub struct Sampler {
    pick: Pick,
    keys: u64,
    drawn: u64,
    random: Random,
}

impl Sampler {
    #[must_use]
    pub fn new(pick: Pick, keys: usize, seed: u64) -> Self {
        Self {
            pick,
            keys: (keys as u64).max(1),
            drawn: 0,
            random: Random::new(seed),
        }
    }

    pub fn draw(&mut self) -> usize {
        let place = match &self.pick {
            Pick::InOrder => self.drawn % self.keys,
            Pick::Uniform => self.random.below(self.keys),
            Pick::Zipf(zipf) => u64::from(zipf.draw(&mut self.random)) % self.keys,
        };
        self.drawn += 1;
        place as usize
    }
}

/// The target that the tools store under the key at `index`: a plausible URL of about `bytes` bytes.
#[must_use]
pub fn target_for(key: &str, bytes: usize) -> String {
    let mut target = format!("https://www.example.com/articles/2026/{key}/");
    let mut filler = Random::new(key.bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte)));
    while target.len() < bytes {
        target.push(char::from(b'a' + filler.below(26) as u8));
    }
    target
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn generated_keys_are_distinct_and_repeatable() {
        let keys = KeySet::generated(200_000, 7, 1);
        let distinct: HashSet<&[u8]> = (0..keys.len()).map(|at| keys.get(at)).collect();
        assert_eq!(distinct.len(), 200_000);
        assert!(distinct.iter().all(|key| key.len() == 7));
        assert_eq!(keys.text(77), KeySet::generated(100, 7, 1).text(77));
        assert_ne!(keys.text(77), KeySet::generated(100, 7, 2).text(77));
    }

    #[test]
    fn keys_of_different_lengths_keep_their_borders() {
        let keys: KeySet = ["a", "bcd", "ef"].into_iter().collect();
        assert_eq!((keys.get(0), keys.get(1)), (&b"a"[..], &b"bcd"[..]));
        assert_eq!((keys.get(2), keys.get(3)), (&b"ef"[..], &b""[..]));
        assert_eq!(keys.prefix(2).len(), 2);
    }

    #[test]
    fn in_order_asks_for_each_key_once_before_any_key_twice() {
        let mut sampler = Sampler::new(Pick::InOrder, 3, 0);
        let drawn: Vec<usize> = (0..5).map(|_| sampler.draw()).collect();
        assert_eq!(drawn, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn targets_have_the_length_that_was_asked_for() {
        assert_eq!(target_for("abcdefg", 60).len(), 60);
        assert_ne!(target_for("abcdefg", 60), target_for("abcdefh", 60));
    }
}
