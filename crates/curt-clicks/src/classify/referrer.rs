use curt_core::limits::VALUE_BYTES_MAX;

/// The host that a `Referer` names, in lower case, without port and user. Paths and queries tell what a visitor did
/// elsewhere and are never kept. Apps name themselves in the same form (`android-app://com.example/`).
pub(super) fn host(referrer: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(referrer).ok()?;
    let (scheme, rest) = text.split_once("://")?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let named = authority
        .rsplit_once('@')
        .map_or(authority, |(_, named)| named);
    let host = without_port(named).trim_end_matches('.');
    let right = !host.is_empty() && host.len() <= VALUE_BYTES_MAX && !scheme.is_empty();
    (right && host.bytes().all(is_of_host)).then(|| host.to_ascii_lowercase())
}

fn without_port(named: &str) -> &str {
    match named.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => named,
    }
}

/// Letters, digits, and what stands in names and in IPv6 addresses. Browsers send other scripts in their ASCII form.
fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_is_kept() {
        for (referrer, expected) in [
            ("https://example.com/a/b?c=d#e", Some("example.com")),
            ("https://WWW.Example.COM", Some("www.example.com")),
            ("http://user:secret@example.com:8080/", Some("example.com")),
            ("https://evil@bank.com@example.com/", Some("example.com")),
            ("http://[2001:db8::1]:8080/x", Some("[2001:db8::1]")),
            ("http://[2001:db8::1]/x", Some("[2001:db8::1]")),
            ("https://example.com.", Some("example.com")),
            ("https://example.com?x", Some("example.com")),
            (
                "android-app://com.google.android.gm/",
                Some("com.google.android.gm"),
            ),
            ("https://xn--mnchen-3ya.de/", Some("xn--mnchen-3ya.de")),
            ("https:///path", None),
            ("https://", None),
            ("://example.com", None),
            ("example.com/path", None),
            ("https://a<script>b/", None),
            ("https://exa mple.com/", None),
            ("about:blank", None),
            ("https://münchen.de/", None),
        ] {
            assert_eq!(host(referrer.as_bytes()).as_deref(), expected, "{referrer}");
        }
        assert_eq!(host(b"https://\xff.com/"), None);
        let long = format!("https://{}.com/", "a".repeat(300));
        assert_eq!(host(long.as_bytes()), None);
    }
}
