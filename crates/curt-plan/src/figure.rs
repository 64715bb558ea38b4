//! Figures as people read them.

/// Three digits and a decimal prefix: `64.0 T`.
fn scaled(value: f64, unit: &str) -> String {
    const STEPS: [(f64, &str); 7] = [
        (1e18, "E"),
        (1e15, "P"),
        (1e12, "T"),
        (1e9, "G"),
        (1e6, "M"),
        (1e3, "k"),
        (1.0, ""),
    ];
    let fitting = STEPS
        .iter()
        .find(|(step, _)| value.abs() >= *step * 0.999_5);
    let (step, prefix) = fitting.copied().unwrap_or((1.0, ""));
    let shown = value / step;
    let digits = match shown.abs() {
        _ if prefix.is_empty() && shown.fract() == 0.0 => 0,
        large if large >= 99.95 => 0,
        middle if middle >= 9.995 => 1,
        _ => 2,
    };
    format!("{shown:.digits$} {prefix}{unit}")
        .trim_end()
        .to_owned()
}

/// A number of bytes, in decimal units as disks are sold.
#[must_use]
pub fn bytes(value: f64) -> String {
    scaled(value, "B")
}

/// A number of things: billions as `B`, as the documents write them.
#[must_use]
pub fn count(value: f64) -> String {
    scaled(value, "").replace('G', "B")
}

/// How often something happens in a second.
#[must_use]
pub fn rate(value: f64) -> String {
    format!("{}/s", count(value))
}

/// A probability: as a share while that can be read, as `1 in N` otherwise.
#[must_use]
pub fn odds(value: f64) -> String {
    match value {
        none if none <= 0.0 => "0".to_owned(),
        likely if likely >= 0.01 => format!("{:.1} %", likely * 100.0),
        rare => format!("1 in {}", count(1.0 / rare)),
    }
}

/// Reads a number as people write it: `0.2`, `1_000_000`, `500M`, `2B`, `128GB`.
#[must_use]
pub fn parse_amount(text: &str) -> Option<f64> {
    let plain: String = text
        .trim()
        .chars()
        .filter(|symbol| !"_, ".contains(*symbol))
        .collect();
    let end = plain.find(|symbol: char| !symbol.is_ascii_digit() && symbol != '.');
    let (number, unit) = plain.split_at(end.unwrap_or(plain.len()));
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "b" | "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_with_their_units() {
        for (text, amount) in [
            ("0.2", Some(0.2)),
            ("1_000,000", Some(1e6)),
            ("500M", Some(5e8)),
            ("2 B", Some(2e9)),
            ("128GB", Some(128e9)),
            ("1e6", None),
            ("-1", None),
            ("", None),
            ("x", None),
            ("1.2.3", None),
        ] {
            assert_eq!(parse_amount(text), amount, "{text:?}");
        }
    }

    #[test]
    fn figures_have_three_digits() {
        for (value, shown) in [
            (64e12, "64.0 TB"),
            (999.6e9, "1.00 TB"),
            (144e9, "144 GB"),
            (74.0, "74 B"),
            (0.0, "0 B"),
            (5.0, "5 B"),
            (5.25, "5.25 B"),
        ] {
            assert_eq!(bytes(value), shown);
        }
        assert_eq!(count(31_536_000_000.0), "31.5 B");
        assert_eq!(rate(228.15), "228/s");
        assert_eq!(
            (odds(0.25), odds(1e-6)),
            ("25.0 %".into(), "1 in 1.00 M".into())
        );
    }
}
