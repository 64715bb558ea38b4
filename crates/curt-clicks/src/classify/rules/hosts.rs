//! Which sort of site a referring host is.

use hashbrown::HashMap;

/// How a visitor came, as reports group referrers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferrerGroup {
    /// Nothing was said: typed, opened from an app, or kept secret.
    Direct,
    Search,
    Social,
    Mail,
    Other,
}

impl ReferrerGroup {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Search => "search",
            Self::Social => "social",
            Self::Mail => "mail",
            Self::Other => "other",
        }
    }

    /// Those that rules can give.
    pub(super) fn named(name: &str) -> Option<Self> {
        let named = [Self::Search, Self::Social, Self::Mail];
        named.into_iter().find(|group| group.name() == name)
    }
}

/// Second labels below which countries register names.
const SHARED_LABELS: [&str; 6] = ["co", "com", "org", "net", "ne", "or"];

/// Hosts and the groups of their sites.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    /// `example.com`, which stands for its subdomains too.
    by_domain: HashMap<Box<str>, ReferrerGroup>,
    /// The label of `example.*`, which stands for every country's.
    by_label: HashMap<Box<str>, ReferrerGroup>,
}

impl Hosts {
    /// Adds `example.com` or `example.*`. The first rule for a host counts.
    pub(super) fn insert(&mut self, host: &str, group: ReferrerGroup) -> Result<(), String> {
        let (named, table) = match host.strip_suffix(".*") {
            Some(label) if !label.contains('.') => (label, &mut self.by_label),
            _ => (host, &mut self.by_domain),
        };
        let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if named.is_empty() || named.len() > 253 || !named.bytes().all(is_of_host) {
            return Err(format!(
                "{host:?} is no host; write example.com or example.*"
            ));
        }
        let named: Box<str> = named.to_ascii_lowercase().into();
        table.entry(named).or_insert(group);
        Ok(())
    }

    /// Of a host in lower case. The longest name that fits decides: `mail.example.com` before `example.com`.
    pub(super) fn group(&self, host: &str) -> ReferrerGroup {
        let mut rest = Some(host);
        while let Some(domain) = rest {
            let below = domain.split_once('.');
            let of_country = || {
                let (label, suffix) = below?;
                let group = self.by_label.get(label)?;
                is_public_suffix(suffix).then_some(group)
            };
            if let Some(group) = self.by_domain.get(domain).or_else(of_country) {
                return *group;
            }
            rest = below.map(|(_, rest)| rest);
        }
        ReferrerGroup::Other
    }
}

/// `com`, `de`, `co.uk`, `com.br`: enough for names that one owner has everywhere.
fn is_public_suffix(suffix: &str) -> bool {
    match suffix.split_once('.') {
        None => !suffix.is_empty(),
        Some((second, country)) => SHARED_LABELS.contains(&second) && country.len() == 2,
    }
}

#[cfg(test)]
mod tests {
    use crate::classify::ClickRules;

    #[test]
    fn subdomains_and_country_variants_count_for_their_site() {
        let rules = ClickRules::built_in();
        for (host, group) in [
            ("www.google.com", "search"),
            ("google.co.uk", "search"),
            ("www.google.com.br", "search"),
            ("news.google.de", "search"),
            ("mail.google.com", "mail"),
            ("com.google.android.gm", "mail"),
            ("com.google.android.googlequicksearchbox", "search"),
            ("duckduckgo.com", "search"),
            ("yandex.ru", "search"),
            ("ya.ru", "search"),
            ("mail.yahoo.com", "mail"),
            ("search.yahoo.co.jp", "search"),
            ("outlook.live.com", "mail"),
            ("l.facebook.com", "social"),
            ("lm.facebook.com", "social"),
            ("t.co", "social"),
            ("out.reddit.com", "social"),
            ("com.linkedin.android", "social"),
            ("www.linkedin.com", "social"),
            ("mastodon.social", "social"),
            ("web.telegram.org", "social"),
            ("webmail.example", "other"),
            ("google.example.com", "other"),
            ("google.com.evil.example", "other"),
            ("notgoogle.com", "other"),
            ("evil-t.co", "other"),
            ("example.com", "other"),
            ("[2001:db8::1]", "other"),
            ("unknown", "other"),
            ("", "other"),
        ] {
            assert_eq!(rules.referrer_group(host).name(), group, "{host}");
        }
    }
}
