//! The session's cookie, and the one by which a browser is known to an account after its session: out of reach of
//! scripts, for this host only, and not sent along from other sites' forms.

use curt_accounts::SignedIn;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

/// Browsers accept the first name only with `Secure`, for the whole site and without `Domain`, so that no neighbour
/// can plant one. Without TLS there is no `Secure`, so that a server tried out at home has the second.
const SESSION: Names = Names {
    secure: "__Host-curt_session",
    plain: "curt_session",
};
const BROWSER: Names = Names {
    secure: "__Host-curt_browser",
    plain: "curt_browser",
};
/// How long a browser is known that nobody signs in with.
const BROWSER_KEPT_SECONDS: u64 = 365 * 86_400;

struct Names {
    secure: &'static str,
    plain: &'static str,
}

/// The session's token in the request, if there is exactly one under the name that the address allows. Where visitors
/// come by TLS the second name counts for nothing: any neighbour, or anybody on the way of a plain request, can plant it.
pub(crate) fn session<'a>(headers: &'a HeaderMap, base: &str) -> Option<&'a str> {
    read(headers, base, &SESSION)
}

/// The token by which the browser is known, as [`session`] finds the session's.
pub(crate) fn browser<'a>(headers: &'a HeaderMap, base: &str) -> Option<&'a str> {
    read(headers, base, &BROWSER)
}

fn read<'a>(headers: &'a HeaderMap, base: &str, names: &Names) -> Option<&'a str> {
    let secure = find(headers, names.secure);
    if is_secure(base) {
        return secure;
    }
    secure.or_else(|| find(headers, names.plain))
}

fn is_secure(base: &str) -> bool {
    base.starts_with("https://")
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
    write(base, &SESSION, token, seconds)
}

/// `Set-Cookie` that removes it. The browser stays known.
pub(crate) fn clear(base: &str) -> Option<HeaderValue> {
    write(base, &SESSION, "", 0)
}

/// The `Set-Cookie` lines for somebody who has just signed in, whose session lasts for so many seconds.
pub(crate) fn signed_in(base: &str, signed_in: &SignedIn, seconds: u64) -> Vec<HeaderValue> {
    let session = set(base, &signed_in.token, seconds);
    let browser = signed_in.browser_token.as_deref();
    let browser = browser.and_then(|token| write(base, &BROWSER, token, BROWSER_KEPT_SECONDS));
    [session, browser].into_iter().flatten().collect()
}

fn write(base: &str, names: &Names, token: &str, seconds: u64) -> Option<HeaderValue> {
    let (name, secure) = if is_secure(base) {
        (names.secure, "; Secure")
    } else {
        (names.plain, "")
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
            let plain = "http://127.0.0.1:8080";
            assert_eq!(session(&headers, plain), expected, "{lines:?}");
            // By TLS there is but one name.
            let secure = expected.filter(|token| *token == "def");
            assert_eq!(session(&headers, "https://sho.rt"), secure, "{lines:?}");
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
