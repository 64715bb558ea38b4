//! Configuration: read whole, checked whole, before anything is opened or bound.
//!
//! `layers` lays the sources over each other, `raw` is what was written, [`Config`] is what it means.

pub(crate) mod check;
mod hint;
mod layers;
pub(crate) mod raw;
mod resolved;
mod secret_files;
pub(crate) mod units;

pub(crate) use layers::default_text;
pub(crate) use resolved::{
    ClickSettings, Config, LogFormat, LogSettings, StoreSettings, check_nodes, clicks_beside,
};

use std::fmt;
use std::path::PathBuf;

use toml::Table;

use crate::cli::ConfigArgs;

/// Names the file where no flag does.
const CONFIG_VARIABLE: &str = "CURT_CONFIG";

/// Settings that cannot be used, each with its name. The process exits with its own code for these.
#[derive(Debug, thiserror::Error)]
pub(crate) struct ConfigError {
    /// What a mistake in a value says begins with the name of the setting.
    mistakes: Vec<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mistakes.as_slice() {
            [mistake] => f.write_str(mistake),
            mistakes => {
                write!(f, "{} settings cannot be used:", mistakes.len())?;
                mistakes.iter().try_for_each(|one| write!(f, "\n  {one}"))
            }
        }
    }
}

impl ConfigError {
    pub(crate) fn new(mistake: impl Into<String>) -> Self {
        Self {
            mistakes: vec![mistake.into()],
        }
    }

    /// The start of a collection; no error by itself.
    pub(crate) fn none() -> Self {
        Self {
            mistakes: Vec::new(),
        }
    }

    /// Adds the mistakes of a step, and returns what it made without any.
    pub(crate) fn note<T>(&mut self, step: Result<T, Self>) -> Option<T> {
        step.map_err(|error| self.mistakes.extend(error.mistakes))
            .ok()
    }

    pub(crate) fn into_result(self) -> Result<(), Self> {
        match self.mistakes.is_empty() {
            true => Ok(()),
            false => Err(self),
        }
    }

    fn within(mut self, place: &str) -> Self {
        for mistake in &mut self.mistakes {
            *mistake = format!("{place}: {mistake}");
        }
        self
    }

    /// The setting, or the section, that the first mistake is about.
    fn setting(&self) -> &str {
        let text = self.mistakes.first().map_or("", String::as_str);
        text.split([':', ' ']).next().unwrap_or_default()
    }
}

impl Config {
    /// Reads the sources that the arguments name, and the environment.
    pub(crate) fn load(arguments: &ConfigArgs) -> Result<Self, ConfigError> {
        sound(Self::read(arguments))
    }

    /// As [`load`](Self::load), with every mistake, and with what the configuration would be if each refused setting had
    /// its default: for a check that is to find the rest, too.
    pub(crate) fn read(arguments: &ConfigArgs) -> (Option<Self>, ConfigError) {
        let mut arguments = arguments.clone();
        // Not read by the argument parser, which would show it as required in its usage lines.
        let variable = std::env::var_os(CONFIG_VARIABLE).filter(|path| !path.is_empty());
        arguments.config = arguments.config.or(variable.map(PathBuf::from));
        Self::from_sources(
            &arguments,
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
        sound(Self::from_sources(&arguments, std::iter::empty()))
    }

    /// As [`read`](Self::read), with the environment given: tests never change the real one.
    pub(crate) fn from_sources(
        arguments: &ConfigArgs,
        environment: impl Iterator<Item = (String, String)>,
    ) -> (Option<Self>, ConfigError) {
        let mut settings = layers::defaults();
        let mut mistakes = ConfigError::none();
        if let Some(path) = &arguments.config {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|problem| {
                ConfigError::new(format!("--config: could not read {name}: {problem}"))
            });
            let laid = text.and_then(|text| layers::overlay_file(&mut settings, &text, &name));
            mistakes.note(laid);
        }
        let environment = secret_files::read_named(environment, &layers::variables());
        mistakes.note(environment.and_then(|environment| {
            layers::overlay_environment(&mut settings, environment.into_iter())
        }));
        for assignment in &arguments.set {
            mistakes.note(layers::overlay_flag(&mut settings, assignment));
        }
        Self::resolve_all(settings, mistakes)
    }

    /// Reports every mistake, not only the first: a value that is refused is replaced by its default until the rest is
    /// sound.
    fn resolve_all(mut settings: Table, mut mistakes: ConfigError) -> (Option<Self>, ConfigError) {
        loop {
            let error = match Self::resolve(settings.clone()) {
                Ok(config) => return (Some(config), mistakes),
                Err(error) => error,
            };
            // Two settings may contradict each other, and the one that is named have its default.
            let setting = error.setting();
            let section = setting
                .rsplit_once('.')
                .map_or(setting, |(section, _)| section);
            let is_reset = [setting, section]
                .into_iter()
                .any(|name| layers::reset(&mut settings, name));
            mistakes.note::<()>(Err(error));
            if !is_reset {
                return (None, mistakes);
            }
        }
    }
}

/// A configuration without a mistake.
fn sound((config, mistakes): (Option<Config>, ConfigError)) -> Result<Config, ConfigError> {
    match config {
        Some(config) => mistakes.into_result().map(|()| config),
        None => Err(mistakes),
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
    fn every_mistake_is_reported_at_once() {
        let set = [
            "server.listen=nowhere",
            "keys.ledger.low=200000",
            "no.such=1",
            "server.workers=two",
            "links.default_status=200",
            "store.links=oracle:x",
        ];
        let problem = Config::with(&set).err().map(|error| error.to_string());
        let problem = problem.unwrap_or_default();
        assert!(problem.starts_with("6 settings"), "{problem}");
        for assignment in set {
            let key = assignment.split('=').next().unwrap_or_default();
            let section = key.trim_end_matches(".low");
            assert!(problem.contains(section), "{key}: {problem}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let arguments = ConfigArgs {
            config: Some("no/such.toml".into()),
            set: Vec::new(),
        };
        let (_, problem) = Config::from_sources(&arguments, std::iter::empty());
        assert!(problem.to_string().contains("no/such.toml"));
    }
}
