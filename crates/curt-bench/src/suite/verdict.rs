//! Whether a figure keeps a promise.

use std::fmt;

use crate::median::Spread;

/// Turns without which nothing is known about the noise.
const TURNS_LEAST: usize = 3;

/// One promise and what was measured.
///
/// It **passes** when the whole interval of the median keeps the bound, **fails** when the whole interval breaks it, and
/// is **too noisy** when the bound lies within the interval, or when there were too few turns to know the noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub what: String,
    pub measured: Spread,
    pub bound: Bound,
    /// What is aimed at beyond the promise.
    pub goal: Option<f64>,
    pub unit: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Pass,
    TooNoisy,
    Fail,
}

impl Bound {
    fn is_kept_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

impl Verdict {
    pub(super) fn new(
        what: impl Into<String>,
        measured: Spread,
        bound: Bound,
        unit: &'static str,
    ) -> Self {
        Self {
            what: what.into(),
            measured,
            bound,
            goal: None,
            unit,
        }
    }

    #[must_use]
    pub fn standing(&self) -> Standing {
        let kept = |value| self.bound.is_kept_by(value);
        let Spread {
            low, high, turns, ..
        } = self.measured;
        if turns.is_some_and(|turns| turns < TURNS_LEAST) {
            return Standing::TooNoisy;
        }
        match (kept(low), kept(high)) {
            (true, true) => Standing::Pass,
            (false, false) => Standing::Fail,
            _ => Standing::TooNoisy,
        }
    }

    /// Whether the promise is more likely broken than kept.
    #[must_use]
    pub fn is_likely_broken(&self) -> bool {
        !self.bound.is_kept_by(self.measured.median)
    }

    /// Whether the bound lies within the noise, so that more turns may change the verdict.
    pub(super) fn is_undecided(&self) -> bool {
        let kept = |value| self.bound.is_kept_by(value);
        kept(self.measured.low) != kept(self.measured.high)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.standing() {
            Standing::Pass => "pass",
            Standing::TooNoisy => "too noisy",
            Standing::Fail => "FAIL",
        };
        let (relation, bound) = match self.bound {
            Bound::AtLeast(least) => ("at least", least),
            Bound::AtMost(most) => ("at most", most),
        };
        let (measured, unit) = (self.measured, self.unit);
        write!(f, "{word:<9}  {}: {:.2}{unit}", self.what, measured.median)?;
        if measured.low < measured.high {
            write!(f, " [{:.2}–{:.2}]", measured.low, measured.high)?;
        }
        write!(f, ", {relation} {bound}{unit} wanted")?;
        if let Some(goal) = self.goal {
            write!(f, ", the goal is {goal}{unit}")?;
        }
        Ok(())
    }
}

/// A promise that could not be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    pub what: String,
    pub why: &'static str,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<9}  {}: {}", "skip", self.what, self.why)
    }
}

/// Whether some promise is shown to be kept, and none is broken, or likely to be and too noisy to tell. A run that could
/// judge none has shown nothing.
#[must_use]
pub fn are_kept(verdicts: &[Verdict]) -> bool {
    let passes = |verdict: &Verdict| verdict.standing() == Standing::Pass;
    verdicts.iter().any(passes) && !verdicts.iter().any(Verdict::is_likely_broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(values: &[f64], bound: Bound) -> Verdict {
        Verdict::new("speed", Spread::of(values).unwrap(), bound, "×")
    }

    #[test]
    fn a_bound_must_be_kept_by_more_than_the_noise() {
        for (values, bound, standing) in [
            (&[1.2; 3][..], Bound::AtLeast(1.2), Standing::Pass),
            (&[1.19; 3], Bound::AtLeast(1.2), Standing::Fail),
            (&[2.0; 3], Bound::AtMost(2.0), Standing::Pass),
            (&[2.01; 3], Bound::AtMost(2.0), Standing::Fail),
            // Two turns do not tell how much they vary.
            (&[1.5; 2], Bound::AtLeast(1.2), Standing::TooNoisy),
            (&[1.1], Bound::AtLeast(1.2), Standing::TooNoisy),
            (&[1.25, 1.3, 1.5], Bound::AtLeast(1.2), Standing::Pass),
            (&[1.1, 1.3, 1.5], Bound::AtLeast(1.2), Standing::TooNoisy),
            (&[1.0, 1.1, 1.5], Bound::AtLeast(1.2), Standing::TooNoisy),
            (&[1.0, 1.1, 1.15], Bound::AtLeast(1.2), Standing::Fail),
            (&[1.0, 1.1, 2.5], Bound::AtMost(2.0), Standing::TooNoisy),
            // One stray of nine is outside the interval.
            (
                &[0.1, 1.3, 1.3, 1.3, 1.3, 1.4, 1.4, 1.4, 1.4],
                Bound::AtLeast(1.2),
                Standing::Pass,
            ),
        ] {
            let verdict = verdict(values, bound);
            assert_eq!(verdict.standing(), standing, "{verdict}");
        }
    }

    #[test]
    fn more_turns_are_wanted_only_where_they_may_change_the_verdict() {
        let undecided = |values: &[f64]| verdict(values, Bound::AtLeast(1.2)).is_undecided();
        assert!(!undecided(&[1.3, 1.4]));
        assert!(undecided(&[1.1, 1.3, 1.5]));
        assert!(undecided(&[1.0, 1.1, 1.5]));
        assert!(!undecided(&[1.0, 1.1]));
    }

    #[test]
    fn a_line_names_the_bound_the_noise_and_the_goal() {
        let mut verdict = verdict(&[1.0, 1.2, 1.5], Bound::AtLeast(1.1));
        assert_eq!(
            verdict.to_string(),
            "too noisy  speed: 1.20× [1.00–1.50], at least 1.1× wanted"
        );
        verdict.measured = Spread::exactly(1.0);
        verdict.goal = Some(1.4);
        assert_eq!(
            verdict.to_string(),
            "FAIL       speed: 1.00×, at least 1.1× wanted, the goal is 1.4×"
        );
    }

    #[test]
    fn a_run_fails_with_a_broken_promise_and_without_a_kept_one() {
        let verdict = |values: &[f64]| verdict(values, Bound::AtLeast(1.0));
        let (pass, fail) = (verdict(&[1.1; 3]), verdict(&[0.9; 3]));
        let (likely_kept, likely_broken) = (verdict(&[0.9, 1.1, 1.2]), verdict(&[0.8, 0.9, 1.2]));
        assert!(!are_kept(&[]));
        assert!(are_kept(std::slice::from_ref(&pass)));
        assert!(!are_kept(&[pass.clone(), fail]));
        assert!(are_kept(&[pass.clone(), likely_kept.clone()]));
        assert!(!are_kept(&[likely_kept]));
        assert!(!are_kept(&[pass, likely_broken]));
    }
}
