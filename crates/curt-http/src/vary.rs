//! `Vary`, which several layers add to.

use http::header::VARY;
use http::{HeaderMap, HeaderValue};

/// Says that the answer depends on a header of the request, beside those that it names already.
pub(crate) fn add_vary(headers: &mut HeaderMap, name: &'static str) {
    let known = headers.get(VARY).and_then(|value| value.to_str().ok());
    let value = match known {
        None => HeaderValue::from_static(name),
        Some(known) if names(known, name) => return,
        Some(known) => HeaderValue::try_from(format!("{known}, {name}"))
            .unwrap_or(HeaderValue::from_static("*")),
    };
    headers.insert(VARY, value);
}

fn names(known: &str, name: &str) -> bool {
    let mut known = known.split(',').map(str::trim);
    known.any(|known| known == "*" || known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_in_one_line_once() {
        let mut headers = HeaderMap::new();
        for name in ["accept", "origin", "accept"] {
            add_vary(&mut headers, name);
        }
        assert_eq!(headers[VARY], "accept, origin");
        headers.insert(VARY, HeaderValue::from_static("*"));
        add_vary(&mut headers, "accept");
        assert_eq!(headers[VARY], "*");
    }
}
