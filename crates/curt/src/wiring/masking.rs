//! Addresses without their secrets. What is shown is what is known to be harmless: whoever forgets to encode a sign of a
//! password must not find the rest of it in a log.

/// What stands for a secret.
const MASK: &str = "***";

/// Parameters whose values are shown.
const SHOWN: [&str; 14] = [
    "application_name",
    "ca",
    "connect_timeout",
    "endpoint",
    "prefix",
    "region",
    "require_ssl",
    "sentinel_user",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
    "tcp_keepalive",
    "verify_ca",
    "verify_identity",
];

/// Parameters whose names are shown.
const NAMED: [&str; 3] = ["password", "sentinel_password", "sslpassword"];

/// The parts of `scheme://account@place?parameters`.
struct Parts<'a> {
    scheme: &'a str,
    account: Option<&'a str>,
    place: &'a str,
    parameters: Option<&'a str>,
}

/// `None`: it is no such text, or one in which the end of the password cannot be told.
fn parts(text: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = text.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let at = rest.rfind('@');
    if at.is_some_and(|at| at > end) || !is_scheme(scheme) {
        return None;
    }
    let (account, rest) = match at {
        Some(at) => (Some(&rest[..at]), &rest[at + 1..]),
        None => (None, rest),
    };
    let (place, parameters) = match rest.split_once(['?', '#']) {
        Some((place, parameters)) => (place, Some(parameters)),
        None => (rest, None),
    };
    if !has_ports_only(place) {
        return None;
    }
    Some(Parts {
        scheme,
        account,
        place,
        parameters,
    })
}

/// Whether the sign that ends the account comes after one that ends the host, or the host was left out: then the password
/// holds a sign that it may hold only in its encoded form.
pub(crate) fn has_unencoded_password(text: &str) -> bool {
    text.contains("://") && parts(text).is_none()
}

/// The address with its account and parameters, passwords masked.
#[must_use]
pub(crate) fn masked(text: &str) -> String {
    if !text.contains("://") {
        return text.to_owned();
    }
    let Some(parts) = parts(text) else {
        let scheme = text.split("://").next().filter(|scheme| is_scheme(scheme));
        return scheme.map_or(MASK.to_owned(), |scheme| format!("{scheme}://{MASK}"));
    };
    let account = match parts.account.map(|account| account.split_once(':')) {
        None => String::new(),
        Some(Some((user, _))) => format!("{user}:{MASK}@"),
        Some(None) => format!("{MASK}@"),
    };
    let parameters = parts.parameters.map(|parameters| {
        let shown: Vec<String> = parameters.split('&').map(masked_parameter).collect();
        format!("?{}", shown.join("&"))
    });
    format!(
        "{}://{account}{}{}",
        parts.scheme,
        parts.place,
        parameters.unwrap_or_default()
    )
}

/// Scheme, hosts and path; neither the account nor the parameters.
pub(crate) fn without_account(text: &str) -> String {
    match parts(text) {
        Some(parts) => format!("{}://{}", parts.scheme, parts.place),
        None => masked(text),
    }
}

/// What an error may repeat of a text that is no address: a short word.
pub(crate) fn is_scheme(text: &str) -> bool {
    (1..=16).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'+' || byte == b'3')
}

/// Whether each host has a port that is one, if any: where the host was left out, a password stands in its place.
fn has_ports_only(place: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let mut hosts = place.split('/').next().unwrap_or_default().split(',');
    hosts.all(|host| {
        // Without the brackets of an IPv6 address, whose colons are no ports.
        let behind = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((_, behind)) => behind,
            None => host.find(':').map_or("", |at| &host[at..]),
        };
        behind.is_empty() || behind.strip_prefix(':').is_some_and(is_port)
    })
}

fn masked_parameter(pair: &str) -> String {
    match pair.split_once('=') {
        Some((name, _)) if SHOWN.contains(&name) => pair.to_owned(),
        Some((name, _)) if NAMED.contains(&name) => format!("{name}={MASK}"),
        _ => MASK.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::wiring::{EngineAddress, Part};

    #[test]
    fn what_helps_an_operator_is_shown() {
        for (text, shown) in [
            (
                "postgres://me:secret@h1:5432,h2/db?sslmode=require",
                "postgres://me:***@h1:5432,h2/db?sslmode=require",
            ),
            ("redis://:hidden@h", "redis://:***@h"),
            ("redis://hidden@h", "redis://***@h"),
            (
                "redis+sentinel://h1,h2/m?sentinel_password=hidden&prefix=p",
                "redis+sentinel://h1,h2/m?sentinel_password=***&prefix=p",
            ),
            ("redis://[::1]:6379/0", "redis://[::1]:6379/0"),
            ("zookeeper://h1,h2/curt", "zookeeper://h1,h2/curt"),
            ("s3://k:hidden@b/x?region=eu", "s3://k:***@b/x?region=eu"),
            ("https://go.example.com:8443", "https://go.example.com:8443"),
            ("sqlite:curt.db", "sqlite:curt.db"),
            ("postgres://u:S3cret/with/slash@h/db", "postgres://***"),
            ("redis://u:S3cret", "redis://***"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }

    /// Pieces that occur nowhere else, with signs between them that mean something in an address.
    fn secret() -> impl Strategy<Value = (Vec<String>, String)> {
        let piece = "[QXZ]{2}[0-9]{2}[QXZ]{2}";
        let sign = proptest::sample::select(vec![
            "/",
            "@",
            "#",
            "?",
            "%",
            "%2",
            "&",
            "=",
            ":",
            "//",
            "://",
            "\\",
            "\"",
            "'",
            " ",
            "\n",
            ";",
            "é",
            "password=",
            "@h/",
        ]);
        proptest::collection::vec((piece, sign), 1..4).prop_map(|parts| {
            let pieces = parts.iter().map(|(piece, _)| piece.clone()).collect();
            let text: String = parts
                .into_iter()
                .flat_map(|(piece, sign)| [piece, sign.to_owned()])
                .collect();
            (pieces, format!("{text}Q77Q"))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn no_piece_of_a_secret_is_shown_whatever_its_shape((mut pieces, secret) in secret()) {
            pieces.push("Q77Q".to_owned());
            for scheme in ["postgres", "redis", "redis+sentinel", "mysql", "zookeeper", "s3", "mongo"] {
                for text in [
                    format!("{scheme}://u:{secret}@h/db"),
                    format!("{scheme}://:{secret}@h1:1,h2:2/x?sslmode=require"),
                    // What stands before a colon is a user's name, and shown.
                    format!("{scheme}://{}@h", secret.replace(':', "")),
                    // Without a host; what stands behind an @ would be one.
                    format!("{scheme}://u:{}", secret.replace('@', "")),
                    format!("{scheme}://h/x?sentinel_password={secret}&prefix=p"),
                    format!("{scheme}://h/x?password={secret}"),
                    format!("{scheme}:{secret}"),
                    format!("u:{secret}@h/db"),
                    format!("host=h user=u password={secret} dbname=d"),
                    secret.clone(),
                ] {
                    let mut shown = Vec::new();
                    if text.contains("://") {
                        shown.push(masked(&text));
                    }
                    for part in Part::ALL {
                        match EngineAddress::parse(&text, part, Path::new("d")) {
                            Ok(address) => shown.extend([address.to_string(), format!("{address:?}")]),
                            Err(problem) => shown.push(problem),
                        }
                    }
                    for shown in shown {
                        for piece in &pieces {
                            prop_assert!(!shown.contains(piece.as_str()), "{text:?} shows {shown:?}");
                        }
                    }
                }
            }
        }
    }
}
