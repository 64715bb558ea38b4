//! Where a link may lead. The text is parsed as a browser would parse it, judged after that, and stored as serialised:
//! what was judged is what is visited.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use curt_core::limits::TARGET_BYTES_MAX;
use curt_core::{Field, FieldError, Target};
use url::{ParseError, Url};

use super::AdmissionRules;
use crate::settings::LinkSettings;

pub(super) fn admit(rules: &AdmissionRules<'_>, text: &str) -> Result<Target, FieldError> {
    let settings = rules.settings;
    let mistake = |code, message: String| Err(FieldError::new(Field::Target, code, message));
    // Browsers strip these around a URL.
    let text = text.trim_matches(|c: char| c <= ' ');
    if text.is_empty() {
        return mistake("target_empty", "A target URL is required.".into());
    }
    let bytes_max = settings.target_bytes_max.min(TARGET_BYTES_MAX);
    // Bounds the work of parsing. Only a text made of `/../` could still come out short enough.
    if text.len() > bytes_max * 4 {
        return mistake("target_too_long", too_long(bytes_max));
    }
    // Browsers drop tabs and line ends inside a URL silently. A person never types them; who sends them is testing us.
    if text.chars().any(char::is_control) {
        return mistake(
            "target_control",
            "The target must not hold control characters such as line ends or tabs.".into(),
        );
    }
    let url = parse(settings, text)?;
    if !settings
        .schemes
        .iter()
        .any(|scheme| **scheme == *url.scheme())
    {
        return mistake(
            "target_scheme",
            format!(
                "The target must begin with one of: {}.",
                listed(&settings.schemes)
            ),
        );
    }
    if !url.username().is_empty() || url.password().is_some() {
        return mistake(
            "target_credentials",
            "The target must not hold a user name or password.".into(),
        );
    }
    if url.host_str().is_none_or(str::is_empty) {
        return mistake("target_host", "The target must name a host.".into());
    }
    let own_hosts = settings.own_hosts.iter().chain(rules.listener);
    if own_hosts.into_iter().any(|own| own.is_host_of(&url)) {
        return mistake(
            "target_own_host",
            "The target must not lead back to this service.".into(),
        );
    }
    if rules.blocklist.blocks(&url) {
        return mistake(
            "target_blocked",
            "The target is blocked: links must not lead there.".into(),
        );
    }
    if url.as_str().len() > bytes_max {
        return mistake("target_too_long", too_long(bytes_max));
    }
    Target::from_serialised(String::from(url)).or_else(|reason| {
        mistake(
            "target_syntax",
            format!("The target cannot be sent: {reason}."),
        )
    })
}

fn parse(settings: &LinkSettings, text: &str) -> Result<Url, FieldError> {
    Url::parse(&with_scheme(settings, text)).map_err(|reason| {
        let why = match reason {
            ParseError::RelativeUrlWithoutBase => {
                "write it as https://example.com/page or example.com/page".to_owned()
            }
            reason => reason.to_string(),
        };
        let message = format!("The target is not a web address: {why}.");
        FieldError::new(Field::Target, "target_syntax", message)
    })
}

/// Puts the usual scheme before `example.com/path`, as people type it; everything else is left to be judged as it is. One
/// rule for all interfaces.
fn with_scheme<'t>(settings: &LinkSettings, text: &'t str) -> Cow<'t, str> {
    let usual = ["https", "http"]
        .into_iter()
        .find(|usual| settings.schemes.iter().any(|scheme| **scheme == **usual));
    match usual {
        Some(scheme) if begins_with_host(text) => Cow::Owned(format!("{scheme}://{text}")),
        _ => Cow::Borrowed(text),
    }
}

/// Whether a text begins with what can only be meant as a host: a name with a dot in it or an IPv4 address, with a port or
/// without. A single word is no host, because it is more likely a slip than a machine; neither is `1.2`, which a
/// browser would read as an address.
fn begins_with_host(text: &str) -> bool {
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.split_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        Some(_) => return false,
        None => authority,
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .chars()
                .all(|c| c.is_alphanumeric() || "-_".contains(c))
    };
    let is_name = |last: &str| !last.chars().all(|c| c.is_ascii_digit());
    match host.rsplit_once('.') {
        Some((labels, last)) if labels.split('.').all(is_label) && is_label(last) => {
            is_name(last) || host.parse::<Ipv4Addr>().is_ok()
        }
        _ => false,
    }
}

fn too_long(bytes_max: usize) -> String {
    format!("The target has more than {bytes_max} bytes.")
}

fn listed(schemes: &[Box<str>]) -> String {
    let schemes: Vec<String> = schemes
        .iter()
        .map(|scheme| format!("{scheme}://"))
        .collect();
    schemes.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_scheme_is_added_where_a_host_is_meant_and_nowhere_else() {
        let settings = LinkSettings::default();
        for typed in [
            "example.com",
            "example.com/a:b?c",
            "example.com:8080/x",
            "example.com?q=1",
            "www.example.com#part",
            "bücher.example/ä",
            "_dmarc.example.com",
            "192.0.2.1/x",
            "192.0.2.1:8080",
        ] {
            assert_eq!(with_scheme(&settings, typed), format!("https://{typed}"));
        }
        for typed in [
            "",
            "foo",
            "localhost",
            "localhost:80/x",
            "http://example.com",
            "javascript:alert(1)",
            "javascript.example:alert(1)",
            "a@example.com",
            "/example.com",
            "//example.com",
            "example.",
            ".com",
            "a..b",
            "1.2",
            "1.2.3.4.5",
            "exa mple.com",
            "example.com:",
            "example.com:99999",
            "example.com\\x",
        ] {
            assert_eq!(with_scheme(&settings, typed), typed);
        }
    }

    #[test]
    fn the_added_scheme_is_one_that_is_allowed() {
        let only = |scheme: &str| LinkSettings {
            schemes: vec![scheme.into()],
            ..LinkSettings::default()
        };
        assert_eq!(with_scheme(&only("http"), "a.example"), "http://a.example");
        assert_eq!(with_scheme(&only("ftp"), "a.example"), "a.example");
    }
}
