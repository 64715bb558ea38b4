//! `Accept-Encoding`.

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

use crate::pages::negotiate::weight;

/// Whether the client takes gzip, and not more gladly the text as it is. Without the header nothing is compressed: programs
/// that can read gzip say so.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let gzip = quality(headers, &["gzip", "x-gzip"]).or_else(|| quality(headers, &["*"]));
    let plain = quality(headers, &["identity"]).unwrap_or(0);
    gzip.is_some_and(|gzip| gzip > 0 && gzip >= plain)
}

/// The weight of a coding in thousandths, if it is named.
fn quality(headers: &HeaderMap, names: &[&str]) -> Option<u16> {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            let name = parts.next()?;
            let is_named = names.iter().any(|wanted| wanted.eq_ignore_ascii_case(name));
            is_named.then(|| parts.find_map(weight).unwrap_or(1_000))
        })
        .max()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn gzip_is_sent_to_whoever_takes_it_and_to_nobody_else() {
        for (value, expected) in [
            ("gzip, deflate, br, zstd", true),
            ("GZIP", true),
            ("x-gzip", true),
            ("*", true),
            ("br, *;q=0.1", true),
            ("gzip;q=0.001", true),
            ("gzip;q=0.5, identity;q=0.5", true),
            ("", false),
            ("identity", false),
            ("br", false),
            ("deflate;q=1", false),
            ("gzip;q=0", false),
            ("gzip; q=0.0, *", false),
            ("gzip;q=0, *;q=1", false),
            ("*;q=0", false),
            ("gzip;q=0.5, identity", false),
            ("gzip;q=0.2, identity;q=0.3", false),
            ("gzipped", false),
        ] {
            let headers =
                HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            assert_eq!(accepts_gzip(&headers), expected, "{value:?}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
        let mut lines = HeaderMap::new();
        for value in ["br", "gzip"] {
            lines.append(ACCEPT_ENCODING, HeaderValue::from_static(value));
        }
        assert!(accepts_gzip(&lines));
    }
}
