//! Durations, sizes and rates as people write them.

use std::time::Duration;

use curt_core::ports::QuotaRule;

const DURATION_UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];
const SIZE_UNITS: [(&str, u64); 4] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("B", 1),
];

/// `"5s"`, `"730d"`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    scaled(text, &DURATION_UNITS)
        .map(Duration::from_millis)
        .ok_or_else(|| {
            format!(
                "{text:?} is not a duration: write a number with ms, s, m, h or d, such as \"5s\""
            )
        })
}

/// The duration as [`duration`] reads it, in the largest unit that it is a whole number of.
pub(crate) fn shown(duration: Duration) -> String {
    let millis = duration.as_millis();
    let whole = |(_, factor): &&(&str, u64)| millis.is_multiple_of(u128::from(*factor));
    let (unit, factor) = DURATION_UNITS
        .iter()
        .rev()
        .find(whole)
        .unwrap_or(&DURATION_UNITS[0]);
    format!("{}{unit}", millis / u128::from(*factor))
}

/// A duration, or `"never"`.
pub(crate) fn duration_or_never(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "never" => Ok(None),
        _ => duration(text)
            .map(Some)
            .map_err(|problem| format!("{problem}, or \"never\"")),
    }
}

/// A size, or `"never"` or `""` for no bound.
pub(crate) fn size_or_never(text: &str) -> Result<Option<u64>, String> {
    match text {
        "never" | "" => Ok(None),
        _ => size(text)
            .map(Some)
            .map_err(|problem| format!("{problem}, or \"never\"")),
    }
}

/// `"256MiB"`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    scaled(text, &SIZE_UNITS).ok_or_else(|| {
        format!(
            "{text:?} is not a size: write a number with B, KiB, MiB or GiB, such as \"256MiB\""
        )
    })
}

/// `"1000/1h"`: an amount per period.
pub(crate) fn rate(text: &str) -> Result<QuotaRule, String> {
    let wrong =
        || format!("{text:?} is not a rate: write an amount and a period, such as \"1000/1h\"");
    let (amount, period) = text.split_once('/').ok_or_else(wrong)?;
    let amount = amount.trim().parse().map_err(|_| wrong())?;
    let period = duration(period.trim())?;
    if period.is_zero() {
        return Err(wrong());
    }
    Ok(QuotaRule { amount, period })
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("730d"), Ok(Duration::from_secs(730 * 86_400)));
        assert_eq!(duration_or_never("never"), Ok(None));
        assert_eq!(size("256MiB"), Ok(256 << 20));
        assert_eq!(size("2 GiB"), Ok(2 << 30));
        let hourly = QuotaRule {
            amount: 1_000,
            period: Duration::from_secs(3_600),
        };
        assert_eq!(rate("1000/1h"), Ok(hourly));
        assert_eq!(rate("1000 / 60m"), Ok(hourly));
        for text in ["500ms", "90s", "10m", "25h", "730d"] {
            assert_eq!(duration(text).map(shown).as_deref(), Ok(text));
        }
    }

    #[test]
    fn refuses_what_has_no_unit_or_overflows() {
        for text in [
            "5",
            "",
            "s",
            "-5s",
            "5 parsecs",
            "1.5s",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(size("5MB").is_err());
        for text in [
            "", "5", "5/", "/1h", "-5/1h", "5/0s", "5/1", "many/1h", "1/1/1h",
        ] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn mutated_units_are_exact_or_refused() {
        let samples = [
            "500ms",
            "5s",
            "10m",
            "24h",
            "730d",
            "64KiB",
            "2 GiB",
            "7B",
            "1000/1h",
            "1 / 500ms",
        ];
        let words = [
            "ms",
            "KiB",
            "/",
            " ",
            "18446744073709551615",
            "99999999999999999999",
            "-",
            "+",
            "\u{b5}s",
        ];
        let fuzz = curt_testkit::fuzz::Fuzz::new("units", samples).with_words(words);
        fuzz.run_texts(|text| {
            let read = (duration(text), size(text), rate(text));
            if let Ok(read) = read.0 {
                assert_eq!(duration(&shown(read)), Ok(read), "{text:?}");
            }
            if let Ok(read) = &read.2 {
                assert!(!read.period.is_zero(), "{text:?}");
            }
            let is_number = text.starts_with(|sign: char| sign.is_ascii_digit());
            assert!(is_number || read.0.is_err() && read.1.is_err(), "{text:?}");
            read.0.is_ok() || read.1.is_ok() || read.2.is_ok()
        });
    }
}
