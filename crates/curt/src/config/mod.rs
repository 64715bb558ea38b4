//! Configuration: read whole, checked whole, before anything is opened or bound.
//!
//! `layers` lays the sources over each other, `raw` is what was written, [`Config`] is what it means.

pub(crate) mod check;
mod layers;
pub(crate) mod raw;
mod resolved;
pub(crate) mod units;

pub(crate) use layers::default_text;
pub(crate) use resolved::{ClickSettings, Config, LogFormat, LogSettings, StoreSettings};

use crate::cli::ConfigArgs;

/// A setting that cannot be used, with its name. The process exits with its own code for these.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConfigError(String);

impl ConfigError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }

    fn within(self, place: &str) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl Config {
    /// Reads the sources that the arguments name, and the environment.
    pub(crate) fn load(arguments: &ConfigArgs) -> Result<Self, ConfigError> {
        Self::from_sources(
            arguments,
            std::env::vars_os().filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.into_string().ok()?))
            }),
        )
    }

    /// The defaults with these settings (`key=value`), whatever the environment is.
    #[cfg(test)]
    pub(crate) fn with(set: &[&str]) -> Result<Self, ConfigError> {
        let arguments = ConfigArgs {
            config: None,
            set: set.iter().map(|text| (*text).to_owned()).collect(),
        };
        Self::from_sources(&arguments, std::iter::empty())
    }

    /// As [`load`](Self::load), with the environment given: tests never change the real one.
    fn from_sources(
        arguments: &ConfigArgs,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut settings = layers::defaults();
        if let Some(path) = &arguments.config {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|problem| ConfigError::new(format!("could not read {name}: {problem}")))?;
            layers::overlay_file(&mut settings, &text, &name)?;
        }
        layers::overlay_environment(&mut settings, environment)?;
        for assignment in &arguments.set {
            layers::overlay_flag(&mut settings, assignment)?;
        }
        Self::resolve(settings)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use curt_accounts::{AccountSettings, LimitSettings, SignUp};

    use super::*;

    #[test]
    fn the_default_file_is_sound_and_says_the_libraries_defaults() {
        let config = Config::with(&[]).unwrap();
        assert_eq!(config.store.links.path(), Path::new("data/curt.db"));
        assert_eq!(config.store.keys, std::slice::from_ref(&config.store.links));
        assert_eq!(config.http.server.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(
            config.links.default_expiry.map(|life| life.as_secs()),
            Some(730 * 86_400)
        );
    }

    #[test]
    fn accounts_and_limits_default_to_the_libraries_defaults() {
        let config = Config::with(&[]).unwrap();
        let library = AccountSettings::default();
        assert_eq!(config.accounts.sign_up, library.sign_up);
        assert_eq!(config.accounts.session_idle, library.session_idle);
        assert_eq!(config.accounts.session_max, library.session_max);
        assert_eq!(config.accounts.passwords, library.passwords);
        assert_eq!(config.limits, LimitSettings::default());
        assert_eq!(config.http.scans, curt_http::ScanSettings::default());
        assert!(config.blocklist.is_none());
        let set = ["limits.misses_per_address=", "accounts.sign_up=open"];
        let config = Config::with(&set).unwrap();
        assert_eq!(config.limits.misses_per_address, None);
        assert_eq!(config.accounts.sign_up, SignUp::Open);
    }

    #[test]
    fn copies_of_links_that_others_change_do_not_live_for_ever() {
        let shared = "store.links=postgres://h/curt";
        assert_eq!(Config::with(&[]).unwrap().cache.entry_ttl, None);
        let config = Config::with(&[shared]).unwrap();
        assert_eq!(config.cache.entry_ttl.map(|ttl| ttl.as_secs()), Some(1));
        assert!(Config::with(&[shared, "cache.entry_ttl=3s"]).is_ok());
        let refused = Config::with(&[shared, "cache.entry_ttl=never"]).err();
        assert!(refused.is_some_and(|why| why.to_string().contains("cache.entry_ttl")));
    }

    #[test]
    fn a_link_that_others_make_does_not_stay_unknown_longer_than_a_second() {
        let shared = "store.links=postgres://h/curt";
        let seconds = |set: &[&str]| Config::with(set).unwrap().cache.negative_ttl.as_secs_f64();
        assert_eq!((seconds(&[]), seconds(&[shared])), (2.0, 1.0));
        assert_eq!(seconds(&[shared, "cache.negative_ttl=200ms"]), 0.2);
        let refused = Config::with(&["cache.negative_ttl=6s"]).err();
        assert!(refused.is_some_and(|why| why.to_string().contains("cache.negative_ttl")));
    }

    #[test]
    fn a_trusted_proxy_is_a_network_or_an_address() {
        let config =
            Config::with(&["server.trusted_proxies=10.0.0.0/8, 192.0.2.1,fd00::/8"]).unwrap();
        let shown: Vec<String> = config
            .http
            .api
            .trusted_proxies
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(shown, ["10.0.0.0/8", "192.0.2.1/32", "fd00::/8"]);
    }

    #[test]
    fn watermarks_that_contradict_each_other_are_refused_by_section() {
        for (bad, section) in [
            ("keys.ledger.low=200000", "keys.ledger"),
            ("keys.pool.low=20000", "keys.pool"),
            ("keys.buffer.low=5000", "keys.buffer"),
            ("keys.claim.low=0", "keys.claim"),
            ("keys.snowflake.machine=8", "keys.snowflake"),
        ] {
            let problem = Config::with(&[bad])
                .err()
                .map(|problem| problem.to_string());
            assert!(problem.is_some_and(|text| text.contains(section)), "{bad}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let arguments = ConfigArgs {
            config: Some("no/such.toml".into()),
            set: Vec::new(),
        };
        let problem = Config::from_sources(&arguments, std::iter::empty())
            .err()
            .map(|e| e.to_string());
        assert!(problem.is_some_and(|text| text.contains("no/such.toml")));
    }
}
