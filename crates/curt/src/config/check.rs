//! Checks of single settings, which name the setting in the error.

use std::time::Duration;

use super::{ConfigError, units};

/// Names the setting in its problem.
pub(crate) fn at<T>(key: &str, value: Result<T, String>) -> Result<T, ConfigError> {
    value.map_err(|problem| ConfigError::new(format!("{key}: {problem}")))
}

/// A number between two bounds, in the width that the code counts with.
pub(crate) fn within(key: &str, value: u64, least: u64, most: u64) -> Result<usize, ConfigError> {
    if !(least..=most).contains(&value) {
        return at(
            key,
            Err(format!("{value} is out of range: use {least} to {most}")),
        );
    }
    at(key, fits(value))
}

pub(crate) fn fits(value: u64) -> Result<usize, String> {
    usize::try_from(value).map_err(|_| format!("{value} is too large for this machine"))
}

/// A duration above zero.
pub(crate) fn positive(key: &str, text: &str) -> Result<Duration, ConfigError> {
    match at(key, units::duration(text))? {
        Duration::ZERO => at(key, Err("must be greater than zero".to_owned())),
        duration => Ok(duration),
    }
}
