//! Where a link may lead. The text is parsed as a browser would parse it, judged after that, and stored as serialised:
//! what was judged is what is visited.

use curt_core::limits::TARGET_BYTES_MAX;
use curt_core::{Field, FieldError, Target};
use url::Url;

use super::AdmissionRules;

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
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(reason) => {
            return mistake(
                "target_syntax",
                format!("The target is not an absolute URL: {reason}."),
            );
        }
    };
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
