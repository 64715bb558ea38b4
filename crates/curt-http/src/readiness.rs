//! What the process can do now, by the outcome of named checks.

use std::sync::{Arc, Mutex, PoisonError};

/// What a failed check takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Impact {
    /// Links are followed and created; something else, such as counting clicks, stands still.
    Degraded,
    /// Links are followed, and none can be created or changed.
    NoCreates,
    /// Requests cannot be answered: a balancer should send them elsewhere.
    Unavailable,
}

impl Impact {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Degraded => "degraded",
            Self::NoCreates => "no_creates",
            Self::Unavailable => "unavailable",
        }
    }
}

/// One named check and how it ended last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    /// `None`: it passed.
    pub failure: Option<FailedCheck>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCheck {
    pub impact: Impact,
    /// For operators: it may name hosts and files.
    pub reason: String,
}

/// The checks of a process.
#[derive(Debug, Default)]
pub struct Readiness {
    checks: Mutex<Vec<Check>>,
}

impl Readiness {
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Notes that the check passed. Returns whether it had not before.
    pub fn pass(&self, name: &'static str) -> bool {
        self.set(name, None)
    }

    /// Notes that the check failed. Returns whether it had passed before or failed with another impact.
    pub fn fail(&self, name: &'static str, impact: Impact, reason: impl Into<String>) -> bool {
        let reason = reason.into();
        self.set(name, Some(FailedCheck { impact, reason }))
    }

    /// Returns every check, in the order in which they were named first.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.clone()
    }

    /// Returns what the failed checks take away together. Before the first check was named nothing is ready.
    #[must_use]
    pub fn impact(&self) -> Option<Impact> {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        if checks.is_empty() {
            return Some(Impact::Unavailable);
        }
        let failures = checks.iter().filter_map(|check| check.failure.as_ref());
        failures.map(|failure| failure.impact).max()
    }

    fn set(&self, name: &'static str, failure: Option<FailedCheck>) -> bool {
        let impact = |failure: &Option<FailedCheck>| failure.as_ref().map(|failure| failure.impact);
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        match checks.iter_mut().find(|check| check.name == name) {
            Some(check) => {
                let has_changed = impact(&check.failure) != impact(&failure);
                check.failure = failure;
                has_changed
            }
            None => {
                checks.push(Check { name, failure });
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_failure_decides() {
        let ready = Readiness::new();
        assert_eq!(ready.impact(), Some(Impact::Unavailable));
        assert!(ready.fail("serving", Impact::Unavailable, "starting"));
        ready.fail("clicks", Impact::Degraded, "disk full");
        assert_eq!(ready.impact(), Some(Impact::Unavailable));
        assert!(ready.pass("serving"));
        assert!(!ready.pass("serving"));
        assert_eq!(ready.impact(), Some(Impact::Degraded));
        assert!(ready.fail("links", Impact::NoCreates, "read-only"));
        assert!(!ready.fail("links", Impact::NoCreates, "still read-only"));
        assert_eq!(ready.impact(), Some(Impact::NoCreates));
        ready.pass("links");
        ready.pass("clicks");
        assert_eq!(ready.impact(), None);
        let names: Vec<_> = ready.checks().iter().map(|check| check.name).collect();
        assert_eq!(names, ["serving", "clicks", "links"]);
    }
}
