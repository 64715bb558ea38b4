//! Durations and sizes as people write them.

use std::time::Duration;

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
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    scaled(text, &DURATION_UNITS)
        .map(Duration::from_millis)
        .ok_or_else(|| {
            format!(
                "{text:?} is not a duration: write a number with ms, s, m, h or d, such as \"5s\""
            )
        })
}

/// A duration, or `"never"`.
pub(super) fn duration_or_never(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "never" => Ok(None),
        _ => duration(text)
            .map(Some)
            .map_err(|problem| format!("{problem}, or \"never\"")),
    }
}

/// `"256MiB"`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    scaled(text, &SIZE_UNITS).ok_or_else(|| {
        format!(
            "{text:?} is not a size: write a number with B, KiB, MiB or GiB, such as \"256MiB\""
        )
    })
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
    }
}
