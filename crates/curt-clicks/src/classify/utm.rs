//! The `utm_` parameters of a query.

use curt_core::Dimension;
use curt_core::limits::VALUE_BYTES_MAX;

/// The parameters that are counted, and their dimensions.
const PARAMETERS: [(&[u8], Dimension); 5] = [
    (b"utm_source", Dimension::UtmSource),
    (b"utm_medium", Dimension::UtmMedium),
    (b"utm_campaign", Dimension::UtmCampaign),
    (b"utm_term", Dimension::UtmTerm),
    (b"utm_content", Dimension::UtmContent),
];

/// Values as they are counted, in any order. Letters keep their case, as with those who invented the parameters. The first
/// value of a parameter counts, and an empty one is none.
pub(super) fn values(text: &[u8]) -> Vec<(Dimension, Box<str>)> {
    let mut values: Vec<(Dimension, Box<str>)> = Vec::new();
    for pair in text.split(|byte| *byte == b'&') {
        let Some(equals) = memchr::memchr(b'=', pair) else {
            continue;
        };
        let (name, value) = (&pair[..equals], &pair[equals + 1..]);
        let named = PARAMETERS.iter().find(|(known, _)| *known == name);
        let Some(&(_, dimension)) = named else {
            continue;
        };
        let value = decoded(value);
        if !value.is_empty() && values.iter().all(|(known, _)| *known != dimension) {
            values.push((dimension, value));
        }
    }
    values
}

/// Decodes a form's value; what is not UTF-8 and what would not print is replaced.
fn decoded(value: &[u8]) -> Box<str> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) if let Some(byte) = hex(*high, *low) => {
                bytes.push(byte);
                rest = after;
            }
            _ => bytes.push(byte),
        }
    }
    let text = String::from_utf8_lossy(&bytes).replace(char::is_control, "\u{fffd}");
    let text = text.trim();
    text[..text.floor_char_boundary(VALUE_BYTES_MAX)].into()
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(&'static str, String)> {
        let values = values(text.as_bytes()).into_iter();
        values
            .map(|(dimension, value)| (dimension.name(), value.into_string()))
            .collect()
    }

    #[test]
    fn values_are_decoded_and_others_left_out() {
        let all = "utm_source=News+Letter&x=1&utm_medium=e%2Dmail&utm_campaign=%C3%BCber%&utm_term=a%0Ab&utm_content=%ff";
        assert_eq!(
            read(all),
            [
                ("utm_source", "News Letter".to_owned()),
                ("utm_medium", "e-mail".to_owned()),
                ("utm_campaign", "über%".to_owned()),
                ("utm_term", "a\u{fffd}b".to_owned()),
                ("utm_content", "\u{fffd}".to_owned()),
            ]
        );
        for none in [
            "",
            "utm_source",
            "utm_source=",
            "utm_source=+",
            "utm_id=1",
            "UTM_SOURCE=x",
        ] {
            assert_eq!(read(none), [], "{none}");
        }
    }

    #[test]
    fn the_first_value_counts_and_long_ones_are_cut() {
        assert_eq!(
            read("utm_term=&utm_term=a&utm_term=b"),
            [("utm_term", "a".to_owned())]
        );
        let long = format!("utm_term={}", "é".repeat(200));
        assert_eq!(read(&long)[0].1.len(), 254);
    }
}
