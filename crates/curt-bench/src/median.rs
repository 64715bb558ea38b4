//! Summing up rounds: medians with their spread, because single runs drift too much to be believed.

use std::fmt;

/// How sure an interval of a median is, where there are enough measurements for it: six.
const CONFIDENCE: f64 = 0.95;

/// The middle and the ends of a few measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// Where the median of all such measurements lies, with a confidence of 95 %: an interval between two of the
    /// measurements, which needs no assumption about how they are distributed. Of fewer than six, the ends.
    pub low: f64,
    pub high: f64,
    /// How many measurements there were; `None` of a figure that does not vary.
    pub turns: Option<usize>,
}

impl Spread {
    /// `None` when there is nothing to sum up.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let upper = sorted[sorted.len() / 2];
        let lower = sorted[(sorted.len() - 1) / 2];
        let cut = outside_interval(sorted.len());
        Some(Self {
            median: f64::midpoint(lower, upper),
            min,
            max,
            low: sorted[cut],
            high: sorted[sorted.len() - 1 - cut],
            turns: Some(sorted.len()),
        })
    }

    /// A figure that the machine does not disturb, such as a number of bytes.
    #[must_use]
    pub fn exactly(value: f64) -> Self {
        Self {
            median: value,
            min: value,
            max: value,
            low: value,
            high: value,
            turns: None,
        }
    }

    /// The spread of `of[i] / to[i]`: rounds are compared with themselves, since the machine drifts between them.
    #[must_use]
    pub fn of_ratios(of: &[f64], to: &[f64]) -> Option<Self> {
        let ratios: Vec<f64> = of
            .iter()
            .zip(to)
            .filter(|(_, base)| **base > 0.0)
            .map(|(value, base)| value / base)
            .collect();
        Self::of(&ratios)
    }
}

/// How many of `count` ordered measurements may be cut at either end so that the true median still lies between the rest
/// with [`CONFIDENCE`]: it lies below the k-th smallest when fewer than k of them are below it, and each is with
/// probability one half.
fn outside_interval(count: usize) -> usize {
    let mut probability = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for cut in 0..count / 2 {
        below += probability;
        if 1.0 - 2.0 * below < CONFIDENCE {
            return cut.saturating_sub(1);
        }
        probability *= (count - cut) as f64 / (cut + 1) as f64;
    }
    0
}

/// `median [min–max]` with the precision of the formatter: `{:.2}`.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(
            f,
            "{:.digits$} [{:.digits$}–{:.digits$}]",
            self.median, self.min, self.max
        )
    }
}

/// `1234567` as `1,234,567`.
#[must_use]
pub fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut out = String::from(if number < 0.0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_values() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]).unwrap().median, 2.0);
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn ratios_compare_each_round_with_itself() {
        let ratio = Spread::of_ratios(&[2.0, 40.0, 9.0], &[1.0, 10.0, 3.0]).unwrap();
        assert_eq!((ratio.min, ratio.median, ratio.max), (2.0, 3.0, 4.0));
        assert_eq!(format!("{ratio:.1}"), "3.0 [2.0–4.0]");
    }

    #[test]
    fn intervals_are_as_wide_as_so_few_measurements_ask_for() {
        // From tables of the binomial distribution: below six no interval reaches 95 %, and the ends are used.
        let expected = [
            (1, 0),
            (3, 0),
            (5, 0),
            (6, 0),
            (8, 0),
            (9, 1),
            (12, 2),
            (27, 7),
            (100, 39),
        ];
        for (count, cut) in expected {
            assert_eq!(outside_interval(count), cut, "{count}");
        }
        let nine = Spread::of(&[9.0, 1.0, 5.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0]).unwrap();
        assert_eq!((nine.low, nine.median, nine.high), (2.0, 5.0, 8.0));
        let single = Spread::of(&[3.0]).unwrap();
        assert_eq!((single.low, single.high, single.turns), (3.0, 3.0, Some(1)));
        assert_eq!(Spread::exactly(3.0).turns, None);
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped(1_234_567.4), "1,234,567");
        assert_eq!(grouped(999.0), "999");
        assert_eq!(grouped(-1_000.0), "-1,000");
    }
}
