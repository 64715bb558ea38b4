//! Popularity by rank: the n-th most popular link is asked for in proportion to `1 / n^s`.

use crate::random::Random;

/// Draws ranks `0 .. n` with probability proportional to `1 / (rank + 1)^s`, in constant time.
///
/// An alias table (Walker's method as Vose refined it): exact up to the rounding of 32-bit thresholds, and one draw
/// touches one table slot, where a search through a cumulative table of a million entries would touch twenty.
#[derive(Clone, Debug)]
pub struct Zipf {
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Draws below this share of 2^32 stay with the slot's own rank.
    stay_below: u32,
    /// Every other draw goes to this rank.
    other: u32,
}

const WHOLE: f64 = 4_294_967_296.0;

impl Zipf {
    /// A distribution over `n` ranks, at least one and fewer than 2^32.
    #[must_use]
    pub fn new(n: u32, s: f64) -> Self {
        let n = n.max(1);
        let weights: Vec<f64> = (1..=n).map(|rank| f64::from(rank).powf(-s)).collect();
        let scale = f64::from(n) / weights.iter().sum::<f64>();
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..n).partition(|&rank| shares[rank as usize] < 1.0);
        let mut slots: Vec<Slot> = (0..n)
            .map(|rank| Slot {
                stay_below: u32::MAX,
                other: rank,
            })
            .collect();
        while let (Some(poor), Some(&rich)) = (small.pop(), large.last()) {
            let share = shares[poor as usize];
            slots[poor as usize] = Slot {
                stay_below: (share * WHOLE) as u32,
                other: rich,
            };
            shares[rich as usize] -= 1.0 - share;
            if shares[rich as usize] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Self { slots }
    }

    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The next rank; 0 is the most popular.
    pub fn draw(&self, random: &mut Random) -> u32 {
        let bits = random.next_u64();
        let rank = (((bits >> 32) * self.slots.len() as u64) >> 32) as u32;
        let slot = self.slots[rank as usize];
        if (bits as u32) < slot.stay_below {
            rank
        } else {
            slot.other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(n: u32, s: f64, draws: u32) -> Vec<u32> {
        let zipf = Zipf::new(n, s);
        let mut random = Random::new(42);
        let mut counts = vec![0_u32; n as usize];
        for _ in 0..draws {
            counts[zipf.draw(&mut random) as usize] += 1;
        }
        counts
    }

    #[test]
    fn counts_follow_one_over_rank() {
        let (n, draws) = (1_000, 2_000_000);
        let counts = drawn(n, 1.0, draws);
        let harmonic: f64 = (1..=n).map(|rank| 1.0 / f64::from(rank)).sum();
        for rank in [1_u32, 2, 3, 10, 100, 1_000] {
            let expected = f64::from(draws) / (f64::from(rank) * harmonic);
            let seen = f64::from(counts[rank as usize - 1]);
            // Five standard deviations of a binomial count.
            assert!(
                (seen - expected).abs() < 5.0 * expected.sqrt(),
                "rank {rank}: {seen} drawn, {expected:.0} expected"
            );
        }
    }

    #[test]
    fn the_whole_distribution_passes_a_chi_square_test() {
        let (n, draws) = (200_u32, 1_000_000_u32);
        let counts = drawn(n, 1.0, draws);
        let harmonic: f64 = (1..=n).map(|rank| 1.0 / f64::from(rank)).sum();
        let chi_square: f64 = (1..=n)
            .map(|rank| {
                let expected = f64::from(draws) / (f64::from(rank) * harmonic);
                (f64::from(counts[rank as usize - 1]) - expected).powi(2) / expected
            })
            .sum();
        // 199 degrees of freedom: mean 199, standard deviation 20.
        assert!((100.0..300.0).contains(&chi_square), "{chi_square}");
    }

    #[test]
    fn an_exponent_of_zero_is_uniform_and_one_rank_is_certain() {
        let counts = drawn(10, 0.0, 100_000);
        assert!(counts.iter().all(|&count| (9_400..10_600).contains(&count)));
        assert_eq!(drawn(1, 1.0, 10), [10]);
    }
}
