//! The most frequent values of a dimension, as a table with bars.

use curt_core::Dimension;
use curt_core::ports::Top;

use super::{country, grouped, percent, permille};
use crate::pages::shortened::shortened;

/// Bytes of a page that a value may take; the API has all of it.
const VALUE_BYTES_SHOWN: usize = 72;

pub(in crate::pages) struct Breakdown {
    /// The name of the dimension, for the anchor and for scripts.
    pub(in crate::pages) id: &'static str,
    pub(in crate::pages) title: &'static str,
    pub(in crate::pages) rows: Vec<BreakdownRow>,
    /// Why there are no rows, or how to get some.
    pub(in crate::pages) nothing: String,
}

pub(in crate::pages) struct BreakdownRow {
    pub(in crate::pages) label: String,
    pub(in crate::pages) count: String,
    /// Of all, in percent.
    pub(in crate::pages) share: String,
    /// Of the longest bar, in percent.
    pub(in crate::pages) width: String,
}

impl Breakdown {
    pub(in crate::pages) fn new(
        dimension: Dimension,
        top: &Top,
        missing_setting: Option<&str>,
    ) -> Self {
        let total = top.total();
        let most = top.values.first().map_or(0, |(_, count)| *count);
        let most = most.max(top.rest);
        let row = |label: String, count: u64| BreakdownRow {
            label,
            count: grouped(count),
            share: percent(permille(count, total)),
            width: percent(permille(count, most).max(4)),
        };
        let listed = top.values.iter();
        let mut rows: Vec<_> = listed
            .map(|(value, count)| row(in_words(dimension, value), *count))
            .collect();
        if top.rest > 0 {
            rows.push(row("All others".to_owned(), top.rest));
        }
        let nothing = match missing_setting {
            Some(setting) => {
                format!("This server does not know: its operator has not set {setting}.")
            }
            None => "Nothing in this time.".to_owned(),
        };
        Self {
            id: dimension.name(),
            title: title(dimension),
            rows,
            nothing,
        }
    }
}

fn title(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Class => "People and programs",
        Dimension::Country => "Countries",
        Dimension::Browser => "Browsers",
        Dimension::System => "Systems",
        Dimension::Device => "Devices",
        Dimension::Referrer => "Referrers",
        Dimension::Language => "Languages",
        Dimension::Orphan => "What was asked for",
        Dimension::Key => "Keys without a link",
        Dimension::ReferrerGroup => "How people came",
        Dimension::UtmSource => "UTM source",
        Dimension::UtmMedium => "UTM medium",
        Dimension::UtmCampaign => "UTM campaign",
        Dimension::UtmTerm => "UTM term",
        Dimension::UtmContent => "UTM content",
        Dimension::City => "Cities",
        Dimension::Network => "Networks",
    }
}

/// A value in words, cut where it is long.
pub(in crate::pages) fn in_words(dimension: Dimension, value: &str) -> String {
    match (dimension, value) {
        (Dimension::Country, code) => match country(code) {
            Some(known) => known.name.to_owned(),
            None => unknown(code),
        },
        (Dimension::Class, "human") => "People".to_owned(),
        (Dimension::Class, "bot") => "Bots".to_owned(),
        (Dimension::Class, "prefetch") => "Fetched ahead by browsers".to_owned(),
        (Dimension::Class, "head") => "Headers only".to_owned(),
        (Dimension::Orphan, "not_found") => "A key without a link".to_owned(),
        (Dimension::Orphan, "base_url") => "The start page".to_owned(),
        (Dimension::Referrer, "" | "direct") => "Direct, or not told".to_owned(),
        (Dimension::ReferrerGroup | Dimension::Device, word) => {
            capitalised(&shortened(word, VALUE_BYTES_SHOWN))
        }
        (_, value) => unknown(value),
    }
}

fn unknown(value: &str) -> String {
    match value {
        "" | "unknown" => "Unknown".to_owned(),
        value => shortened(value, VALUE_BYTES_SHOWN),
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_in_words_and_cut() {
        let top = Top {
            values: vec![("DE".into(), 6), ("unknown".into(), 3)],
            rest: 1,
        };
        let shown = Breakdown::new(Dimension::Country, &top, None);
        let rows: Vec<_> = shown
            .rows
            .iter()
            .map(|row| (row.label.as_str(), row.count.as_str(), row.share.as_str()))
            .collect();
        assert_eq!(
            rows,
            [
                ("Germany", "6", "60"),
                ("Unknown", "3", "30"),
                ("All others", "1", "10")
            ]
        );
        let long = "ä".repeat(300);
        assert_eq!(in_words(Dimension::Referrer, &long).chars().count(), 37);
        assert_eq!(
            in_words(Dimension::Referrer, &"<".repeat(99))
                .chars()
                .count(),
            15
        );
        let none = Breakdown::new(Dimension::City, &Top::default(), Some("clicks.countries"));
        assert!(none.rows.is_empty() && none.nothing.contains("clicks.countries"));
    }
}
