//! The visitor's query, added to the target of a link that forwards it.

/// Longest query that is forwarded, in bytes as sent on. A longer one is left out: the visitor still arrives, and a
/// proxy on the way does not choke on the line.
pub const FORWARDED_QUERY_BYTES_MAX: usize = 4_096;

/// Appends `target` to `out`, with `query` added to the target's own.
///
/// The query goes in front of the fragment and behind a `?` or `&` of ours, so it can neither change scheme, host or
/// path nor cut off what the target says. Bytes that have no place in a query are percent-encoded: what comes out is
/// visible ASCII, whatever came in.
pub fn write_location(out: &mut Vec<u8>, target: &[u8], query: Option<&str>) {
    let Some(query) = query.filter(|query| !query.is_empty()) else {
        out.extend_from_slice(target);
        return;
    };
    let fragment_at = target.iter().position(|byte| *byte == b'#');
    let (base, fragment) = target.split_at(fragment_at.unwrap_or(target.len()));
    out.extend_from_slice(base);
    let before = out.len();
    match base.last() {
        _ if !base.contains(&b'?') => out.push(b'?'),
        Some(b'?' | b'&') => {}
        _ => out.push(b'&'),
    }
    let start = out.len();
    for &byte in query.as_bytes() {
        push_encoded(out, byte);
        if out.len() - start > FORWARDED_QUERY_BYTES_MAX {
            out.truncate(before);
            break;
        }
    }
    out.extend_from_slice(fragment);
}

/// Returns the request target with its query encoded as [`write_location`] encodes it, so that whoever reads the target next
/// takes all of it for the query; `None` when there is nothing to encode.
pub(crate) fn encode_query(target: &[u8]) -> Option<Vec<u8>> {
    let query_at = target.iter().position(|byte| *byte == b'?')? + 1;
    let (path, query) = target.split_at(query_at);
    if path.contains(&b'#') || query.iter().all(|byte| belongs_in_query(*byte)) {
        return None;
    }
    let mut encoded = path.to_vec();
    for &byte in query {
        push_encoded(&mut encoded, byte);
    }
    Some(encoded)
}

fn push_encoded(out: &mut Vec<u8>, byte: u8) {
    if belongs_in_query(byte) {
        out.push(byte);
    } else {
        out.extend_from_slice(&[b'%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
    }
}

/// Visible ASCII, apart from what ends a query or what the URL standard encodes there.
fn belongs_in_query(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'#' | b'"' | b'<' | b'>')
}

fn hex_digit(nibble: u8) -> u8 {
    match nibble {
        0..=9 => b'0' + nibble,
        _ => b'A' + nibble - 10,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined(target: &str, query: &str) -> String {
        let mut out = Vec::new();
        write_location(&mut out, target.as_bytes(), Some(query));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_query_goes_between_the_targets_own_and_its_fragment() {
        for (target, query, whole) in [
            ("https://a/", "x=1", "https://a/?x=1"),
            ("https://a/?b=2", "x=1", "https://a/?b=2&x=1"),
            ("https://a/?", "x=1", "https://a/?x=1"),
            ("https://a/?b&", "x=1", "https://a/?b&x=1"),
            ("https://a/#f", "x=1", "https://a/?x=1#f"),
            ("https://a/?b=2#f?g", "x=1", "https://a/?b=2&x=1#f?g"),
            ("https://a/#f?g", "x=1", "https://a/?x=1#f?g"),
            ("https://a/", "", "https://a/"),
            ("https://a/", "?//evil/", "https://a/??//evil/"),
        ] {
            assert_eq!(joined(target, query), whole);
        }
    }

    #[test]
    fn what_could_split_a_header_or_end_the_query_is_encoded() {
        assert_eq!(
            joined("https://a/", "x=\r\nSet-Cookie: y#z \0é\""),
            "https://a/?x=%0D%0ASet-Cookie:%20y%23z%20%00%C3%A9%22"
        );
    }

    #[test]
    fn a_query_that_is_too_long_is_left_out_whole() {
        let longest = "q".repeat(FORWARDED_QUERY_BYTES_MAX);
        assert!(joined("https://a/#f", &longest).len() > FORWARDED_QUERY_BYTES_MAX);
        assert_eq!(
            joined("https://a/#f", &format!("{longest}q")),
            "https://a/#f"
        );
        let encoded = "é".repeat(FORWARDED_QUERY_BYTES_MAX / 3);
        assert_eq!(joined("https://a/?b", &encoded), "https://a/?b");
    }

    proptest! {
        #[test]
        fn no_query_moves_the_visitor_elsewhere(query in ".{0,200}") {
            for target in ["https://host.example/path", "https://host.example/path?own=1#part"] {
                let whole = joined(target, &query);
                prop_assert!(whole.bytes().all(|byte| byte.is_ascii_graphic()));
                let (before, after) = (url::Url::parse(target).unwrap(), url::Url::parse(&whole).unwrap());
                prop_assert_eq!(before.origin(), after.origin());
                prop_assert_eq!(before.path(), after.path());
                prop_assert_eq!(before.fragment(), after.fragment());
                prop_assert!(after.query().unwrap_or("").starts_with(before.query().unwrap_or("")));
            }
        }
    }
}
