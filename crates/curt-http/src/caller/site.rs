//! Which site's page sent a request. Browsers say so; programs need not.

use http::HeaderMap;
use http::header::{HOST, ORIGIN};

const SEC_FETCH_SITE: &str = "sec-fetch-site";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendingSite {
    /// One of our own pages, or the address bar.
    Own,
    Other,
    /// Nothing was said: a program, or a very old browser.
    Unknown,
}

impl SendingSite {
    pub(crate) fn from_headers(headers: &HeaderMap, base: &str) -> Self {
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or(""));
        match (text(SEC_FETCH_SITE), text(ORIGIN.as_str())) {
            (Some("same-origin" | "none"), None) => Self::Own,
            // Both must agree: a proxy may have stripped one, and only a browser sets the first.
            (Some("same-origin" | "none") | None, Some(origin)) => {
                let host = text(HOST.as_str()).unwrap_or("");
                // A page that came without TLS can be anybody's, whatever host it names.
                let needs_tls = base.starts_with("https://");
                let same_host = origin.split_once("://").is_some_and(|(scheme, named)| {
                    !named.is_empty() && named == host && (!needs_tls || scheme == "https")
                });
                if origin == base || same_host {
                    Self::Own
                } else {
                    Self::Other
                }
            }
            (Some(_), _) => Self::Other,
            (None, None) => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_page_is_told_from_our_own() {
        use SendingSite::{Other, Own, Unknown};
        for (fetch, origin, expected) in [
            (None, None, Unknown),
            (Some("same-origin"), None, Own),
            (Some("none"), None, Own),
            (Some("same-site"), None, Other),
            (Some("cross-site"), None, Other),
            (Some("cross-site"), Some("https://sho.rt"), Other),
            (Some("same-origin"), Some("https://evil.example"), Other),
            (Some("same-origin"), Some("null"), Other),
            (None, Some("null"), Other),
            (None, Some("https://sho.rt"), Own),
            (None, Some("http://127.0.0.1:8080"), Other),
            (Some("same-origin"), Some("http://127.0.0.1:8080"), Other),
            (None, Some("https://127.0.0.1:8080"), Own),
            (None, Some("http://sho.rt"), Other),
            (None, Some("https://sho.rt.evil.example"), Other),
            (None, Some("https://"), Other),
            (Some("nonsense"), None, Other),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "127.0.0.1:8080".parse().unwrap());
            for (name, value) in [(SEC_FETCH_SITE, fetch), (ORIGIN.as_str(), origin)] {
                if let Some(value) = value {
                    let name = http::HeaderName::from_static(name);
                    headers.insert(name, value.parse().unwrap());
                }
            }
            let seen = SendingSite::from_headers(&headers, "https://sho.rt");
            assert_eq!(seen, expected, "{fetch:?} {origin:?}");
            // Without TLS the host alone decides.
            let plain = SendingSite::from_headers(&headers, "http://sho.rt");
            let own_host = [
                "http://127.0.0.1:8080",
                "https://127.0.0.1:8080",
                "http://sho.rt",
            ];
            let expected = match origin {
                Some(origin) if own_host.contains(&origin) => Own,
                Some("https://sho.rt") => Other,
                _ => expected,
            };
            assert_eq!(plain, expected, "{fetch:?} {origin:?} without TLS");
        }
    }
}
