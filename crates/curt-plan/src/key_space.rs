//! How long keys have to be.

use serde::Serialize;

/// Lengths that `keys.length` takes.
const LENGTH_MIN: u32 = 4;
const LENGTH_MAX: u32 = 22;

/// The alphabets of `keys.alphabet` by their symbols; both of 64 come to the same.
pub(crate) const ALPHABETS: [(&str, f64); 3] =
    [("base36", 36.0), ("base62", 62.0), ("base64url", 64.0)];

/// An alphabet with the shortest keys that keep the odds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyChoice {
    pub alphabet: &'static str,
    pub symbols: f64,
    pub length: u32,
    /// Keys that there are.
    pub keys: f64,
    pub odds: KeyOdds,
}

/// What random keys meet when all links have been made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KeyOdds {
    /// The share of keys in use: the odds that a new random key is taken, or that a guess finds a link.
    pub used_share: f64,
    /// Creates that met a taken key until then, and took another.
    pub conflicts: f64,
    /// The odds that there was at least one.
    pub any_conflict: f64,
    /// Guesses until one finds a link, on average.
    pub guesses_per_hit: f64,
    /// Hours until one address that is allowed `misses_per_hour` misses finds a link, on average.
    pub hours_per_hit: f64,
}

/// Misses that one address may have in an hour by default: `limits.misses_per_address`, 30 in a minute.
const MISSES_PER_HOUR: f64 = 1_800.0;

impl KeyOdds {
    #[must_use]
    pub fn new(links: f64, keys: f64) -> Self {
        let used_share = (links / keys).min(1.0);
        // Each create meets the links that were made before it.
        let conflicts = links * links / (2.0 * keys);
        Self {
            used_share,
            conflicts,
            any_conflict: -(-conflicts).exp_m1(),
            guesses_per_hit: 1.0 / used_share,
            hours_per_hit: 1.0 / used_share / MISSES_PER_HOUR,
        }
    }
}

impl KeyChoice {
    /// The shortest keys of which at most `share` are in use when there are `links`.
    pub(crate) fn shortest(alphabet: (&'static str, f64), links: f64, share: f64) -> Self {
        let (alphabet, symbols) = alphabet;
        let space = |length: u32| symbols.powf(f64::from(length));
        let length = (LENGTH_MIN..LENGTH_MAX)
            .find(|length| links <= share * space(*length))
            .unwrap_or(LENGTH_MAX);
        let keys = space(length);
        Self {
            alphabet,
            symbols,
            length,
            keys,
            odds: KeyOdds::new(links, keys),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_as_long_as_the_odds_need() {
        let choose = |links, share| KeyChoice::shortest(("base62", 62.0), links, share).length;
        assert_eq!(choose(1.0, 0.5), 4);
        // 62^6 is 56.8 billion.
        assert_eq!(choose(28e9, 0.5), 6);
        assert_eq!(choose(29e9, 0.5), 7);
        assert_eq!(choose(1e6, 0.001), 6);
        assert_eq!(choose(1e40, 0.5), LENGTH_MAX);
    }

    /// Against the birthday problem, drawn.
    #[test]
    fn conflicts_are_those_that_random_keys_meet() {
        let (links, keys) = (3_000_u64, 100_000_u64);
        let mut state = 7_u64;
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % keys
        };
        let rounds = 200;
        let mut met = 0_u64;
        for _ in 0..rounds {
            let mut used = std::collections::HashSet::new();
            met += (0..links).filter(|_| !used.insert(draw())).count() as u64;
        }
        let drawn = met as f64 / f64::from(rounds);
        let told = KeyOdds::new(links as f64, keys as f64).conflicts;
        assert!((drawn / told - 1.0).abs() < 0.05, "{drawn} and {told}");
    }
}
