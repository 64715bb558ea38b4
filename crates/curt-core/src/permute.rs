//! A keyed bijection on numbers below a bound, so that neighbouring ids do not look like neighbours.
//!
//! A balanced Feistel network over the smallest even number of bits that holds the bound, with cycle walking for
//! what falls outside. It hides order from people who look at keys; it is not a cipher to keep secrets with, and
//! uniqueness never rests on it (K-1 does).

use xxhash_rust::xxh3::xxh3_64_with_seed;

const ROUNDS: u64 = 6;

/// A permutation of `0..bound`, fixed by its secret.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    secret: u64,
    bound: u64,
    half_bits: u32,
}

impl Permutation {
    /// `bound` may be at most `2^62`, so that both halves fit without carries; `None` past that or for zero.
    #[must_use]
    pub fn new(secret: u64, bound: u64) -> Option<Self> {
        if bound == 0 || bound > 1 << 62 {
            return None;
        }
        let bits = 64 - (bound - 1).leading_zeros();
        Some(Self {
            secret,
            bound,
            half_bits: bits.div_ceil(2).max(1),
        })
    }

    /// Where `number` goes. `number` must be below the bound.
    #[must_use]
    pub fn apply(&self, number: u64) -> u64 {
        debug_assert!(number < self.bound);
        let mut walked = number;
        // At most four times the bound lies in the network's domain, so the expected walk is below four steps.
        loop {
            walked = self.network(walked);
            if walked < self.bound {
                return walked;
            }
        }
    }

    fn network(&self, number: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round in 0..ROUNDS {
            let mixed = xxh3_64_with_seed(&right.to_le_bytes(), self.secret ^ (round << 56));
            (left, right) = (right, left ^ (mixed & mask));
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn is_a_bijection_on_bounds_of_every_shape() {
        for bound in [1, 2, 3, 10, 62, 64, 1_000, 4_096, 10_007] {
            let permutation = Permutation::new(42, bound).unwrap();
            let images: HashSet<u64> = (0..bound).map(|n| permutation.apply(n)).collect();
            assert_eq!(images.len() as u64, bound);
            assert!(images.iter().all(|&image| image < bound));
        }
    }

    #[test]
    fn neighbours_do_not_stay_neighbours() {
        let permutation = Permutation::new(7, 1 << 48).unwrap();
        let close = (0..10_000_u64)
            .filter(|&n| permutation.apply(n).abs_diff(permutation.apply(n + 1)) < 1 << 20)
            .count();
        assert!(close < 5, "{close} neighbours of 10,000 stayed close");
    }

    #[test]
    fn golden_values_never_change() {
        let permutation = Permutation::new(1, 1 << 48).unwrap();
        let images: Vec<u64> = (0..3).map(|n| permutation.apply(n)).collect();
        assert_eq!(images, GOLDEN);
    }

    const GOLDEN: [u64; 3] = [116_407_246_631_829, 242_383_119_129_572, 17_978_421_772_377];
}
