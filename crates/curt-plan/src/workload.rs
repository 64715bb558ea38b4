//! What a plan is asked for.

use serde::Serialize;

/// Links and clicks to come, and the machines to hold them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workload {
    /// Links that are made in a month.
    pub writes_per_month: f64,
    /// Clicks for each link that is made.
    pub reads_per_write: f64,
    /// How long links are kept and added.
    pub years: f64,
    /// What a link takes on disk; `None`: what this build takes for a target of 60 bytes.
    pub bytes_per_link: Option<f64>,
    /// The share of all links that caches hold.
    pub cached_share: f64,
    /// How many times the average the busiest second has.
    pub peak: f64,
    /// The share of the key space that may be in use at the end: the odds of a guess, too.
    pub guess_odds: f64,
    /// Disk of a machine for a links database.
    pub disk_bytes: f64,
    /// Memory of a cache server.
    pub cache_bytes: f64,
    /// Cores of a server.
    pub cores: f64,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            writes_per_month: 1e6,
            reads_per_write: 100.0,
            years: 5.0,
            bytes_per_link: None,
            cached_share: 0.2,
            peak: 3.0,
            guess_odds: 0.001,
            disk_bytes: 2e12,
            cache_bytes: 128e9,
            cores: 4.0,
        }
    }
}

/// An input that no plan can be made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The input, as the API and the command line name it.
    pub field: &'static str,
    pub message: String,
}

impl std::fmt::Display for InputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for InputError {}

/// Name, least and greatest of an input.
type Bounds = (&'static str, f64, f64);

impl Workload {
    /// What each input may be: all products of them stay far from the limits of a number.
    pub const BOUNDS: [Bounds; 10] = [
        ("writes_per_month", 1.0, 1e12),
        ("reads_per_write", 0.0, 1e6),
        ("years", 0.01, 1_000.0),
        ("bytes_per_link", 16.0, 1e6),
        ("cached_share", 0.0, 1.0),
        ("peak", 1.0, 1_000.0),
        ("guess_odds", 1e-12, 0.5),
        ("disk_bytes", 1e9, 1e15),
        ("cache_bytes", 1e8, 1e14),
        ("cores", 1.0, 1_024.0),
    ];

    /// The input of that name, to be set: one that was left open is 0 from then on.
    pub fn field_mut(&mut self, name: &str) -> Option<&mut f64> {
        Some(match name {
            "writes_per_month" => &mut self.writes_per_month,
            "reads_per_write" => &mut self.reads_per_write,
            "years" => &mut self.years,
            "bytes_per_link" => self.bytes_per_link.get_or_insert(0.0),
            "cached_share" => &mut self.cached_share,
            "peak" => &mut self.peak,
            "guess_odds" => &mut self.guess_odds,
            "disk_bytes" => &mut self.disk_bytes,
            "cache_bytes" => &mut self.cache_bytes,
            "cores" => &mut self.cores,
            _ => return None,
        })
    }

    /// Refuses what is out of bounds.
    pub fn check(&self) -> Result<(), Vec<InputError>> {
        let mut read = self.clone();
        let has_size = read.bytes_per_link.is_some();
        let wrong: Vec<InputError> = Self::BOUNDS
            .into_iter()
            .filter(|(field, ..)| has_size || *field != "bytes_per_link")
            .filter_map(|(field, least, most)| {
                let value = *read.field_mut(field)?;
                // Not the other way round: what is no number is not within either.
                let is_within = (least..=most).contains(&value);
                (!is_within).then(|| InputError {
                    field,
                    message: format!("must be a number from {least} to {most}"),
                })
            })
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_bounds_is_named() {
        assert_eq!(Workload::default().check(), Ok(()));
        for (field, ..) in Workload::BOUNDS {
            for value in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
                let mut workload = Workload::default();
                *workload.field_mut(field).unwrap() = value;
                let wrong = workload.check().unwrap_err();
                assert_eq!(wrong.len(), 1);
                assert_eq!(wrong[0].field, field);
            }
        }
        assert!(Workload::default().field_mut("nothing").is_none());
    }
}
