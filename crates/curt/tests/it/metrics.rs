//! What `/metrics` shows.

use std::collections::BTreeMap;

/// Samples by their name with labels, as they are written.
#[derive(Debug)]
pub(crate) struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    pub(crate) fn parse(text: &str) -> Self {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        Self(
            samples
                .filter_map(|line| {
                    let (name, value) = line.rsplit_once(' ')?;
                    Some((name.to_owned(), value.parse().ok()?))
                })
                .collect(),
        )
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    pub(crate) fn matching(&self, wanted: impl Fn(&str) -> bool) -> Vec<(&str, f64)> {
        let samples = self.0.iter();
        samples
            .filter(|(name, value)| wanted(name) && **value > 0.0)
            .map(|(name, value)| (name.as_str(), *value))
            .collect()
    }
}
