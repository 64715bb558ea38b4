//! Charts as the server draws them: SVG without text, whose labels and tables are HTML beside it. Nothing here holds
//! markup: templates write it, and escape what strangers sent.

mod breakdown;
mod countries;
mod map;
mod series;

pub(super) use breakdown::{Breakdown, in_words};
pub(super) use map::CountryMap;
pub(super) use series::SeriesChart;

use countries::country;

/// A number as people read it: `1,234,567`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The share of a whole, in thousandths.
fn permille(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * 1_000 / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(1_000).min(1_000)
}

/// Thousandths as percent: `12.5`.
fn percent(permille: u64) -> String {
    match permille % 10 {
        0 => (permille / 10).to_string(),
        tenth => format!("{}.{tenth}", permille / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345, "12,345"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn shares_are_exact_to_a_tenth_of_a_percent() {
        assert_eq!(percent(permille(1, 8)), "12.5");
        assert_eq!(percent(permille(1, 3)), "33.3");
        assert_eq!(percent(permille(5, 5)), "100");
        assert_eq!(percent(permille(0, 0)), "0");
        assert_eq!(permille(u64::MAX, u64::MAX), 1_000);
    }
}
