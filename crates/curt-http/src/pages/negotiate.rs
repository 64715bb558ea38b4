//! What the client would rather read.

use http::HeaderMap;
use http::header::ACCEPT;

/// Whether HTML is asked for by name and nothing that a program reads is asked for more. A missing `Accept` and
/// `*/*` come from programs.
pub(crate) fn prefers_html(headers: &HeaderMap) -> bool {
    let html = quality(headers, &["text/html", "application/xhtml+xml"]);
    let json = quality(headers, &["application/json", "application/problem+json"]);
    html > 0 && html >= json
}

/// Whether JSON is asked for by name, and not less than plain text.
pub(crate) fn prefers_json(headers: &HeaderMap) -> bool {
    let json = quality(headers, &["application/json"]);
    json > 0 && json >= quality(headers, &["text/plain"])
}

/// The weight of the best of `types`, in thousandths; 0 when none of them is named.
fn quality(headers: &HeaderMap, types: &[&str]) -> u16 {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next()?;
            types
                .iter()
                .any(|wanted| wanted.eq_ignore_ascii_case(name))
                .then(|| parts.find_map(weight).unwrap_or(1_000))
        })
        .max()
        .unwrap_or(0)
}

/// The weight that a parameter sets, in thousandths; `None`: it is another one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is clamped to 0..=1000 first"
)]
pub(crate) fn weight(parameter: &str) -> Option<u16> {
    let (name, value) = parameter.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let value: f32 = value.trim().parse().ok()?;
    Some((value * 1_000.0).clamp(0.0, 1_000.0) as u16)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn accept(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(value))])
    }

    #[test]
    fn browsers_read_html_and_programs_do_not() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for (value, html) in [
            (browser, true),
            ("TEXT/HTML", true),
            ("*/*", false),
            ("application/json", false),
            ("application/json, text/html;q=0.5", false),
            ("application/json;q=0.5, text/html", true),
            ("text/html;q=0", false),
            ("text/html;q=nan", false),
            ("text/html;q=", true),
            ("text/*", false),
            ("", false),
        ] {
            assert_eq!(prefers_html(&accept(value)), html, "{value}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }

    #[test]
    fn json_must_be_asked_for_by_name() {
        for (value, json) in [
            ("application/json", true),
            ("application/json, text/plain", true),
            ("application/json;q=0.1, text/plain", false),
            ("*/*", false),
        ] {
            assert_eq!(prefers_json(&accept(value)), json, "{value}");
        }
    }
}
