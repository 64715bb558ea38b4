//! The session's cookie: out of reach of scripts, for this host only, and not sent along from other sites' forms.

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

/// Browsers accept the first name only with `Secure`, for the whole site and without `Domain`, so that no neighbour
/// can plant one. Without TLS there is no `Secure`, so that a server tried out at home has the second.
const SECURE_NAME: &str = "__Host-curt_session";
const PLAIN_NAME: &str = "curt_session";

/// The session's token in the request, if there is exactly one under the better name.
pub(crate) fn session(headers: &HeaderMap) -> Option<&str> {
    find(headers, SECURE_NAME).or_else(|| find(headers, PLAIN_NAME))
}

fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).into_iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    let mut values = pairs.filter_map(|pair| {
        let (found, value) = pair.trim().split_once('=')?;
        (found == name).then_some(value)
    });
    let value = values.next()?;
    // Two of one name: somebody else may have set one of them.
    values.next().is_none().then_some(value)
}

/// `Set-Cookie` for a new session; the browser forgets it after so many seconds.
pub(crate) fn set(base: &str, token: &str, seconds: u64) -> Option<HeaderValue> {
    write(base, token, seconds)
}

/// `Set-Cookie` that removes it.
pub(crate) fn clear(base: &str) -> Option<HeaderValue> {
    write(base, "", 0)
}

fn write(base: &str, token: &str, seconds: u64) -> Option<HeaderValue> {
    let (name, secure) = if base.starts_with("https://") {
        (SECURE_NAME, "; Secure")
    } else {
        (PLAIN_NAME, "")
    };
    let text = format!("{name}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_found_among_others_and_never_guessed() {
        for (lines, expected) in [
            (&["curt_session=abc"][..], Some("abc")),
            (&["a=b; curt_session=abc; c=d"], Some("abc")),
            (&["a=b", "curt_session=abc"], Some("abc")),
            (&["curt_session=abc; __Host-curt_session=def"], Some("def")),
            (&["curt_session=abc; curt_session=def"], None),
            (&["xcurt_session=abc; curt_sessionx=1; curt_session"], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(COOKIE, line.parse().unwrap());
            }
            assert_eq!(session(&headers), expected, "{lines:?}");
        }
    }

    #[test]
    fn the_cookie_is_as_hard_as_the_address_allows() {
        assert_eq!(
            set("https://sho.rt", "t", 60).unwrap(),
            "__Host-curt_session=t; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure"
        );
        assert_eq!(
            clear("http://127.0.0.1:8080").unwrap(),
            "curt_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
        );
    }
}
