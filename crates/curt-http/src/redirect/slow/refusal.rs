//! Why a visitor does not get to the target.

use std::sync::Arc;

use curt_core::Link;
use http::header::ALLOW;

use crate::metrics::RedirectOutcome;
use crate::pages::UnlockReason;
use crate::problem::{Problem, ProblemCode};

/// Why a visitor is not sent to the target.
pub(super) enum Refusal {
    /// Nobody is known to be asking.
    SignInNeeded(Arc<Link>),
    PasswordNeeded {
        link: Arc<Link>,
        reason: UnlockReason,
    },
    /// The link has changed since it was resolved.
    Outdated,
    Problem(Problem),
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl Refusal {
    /// Whether it says something about us and nothing about the visitor.
    pub(super) fn is_failure(&self) -> bool {
        let code = match self {
            Self::Problem(problem) => problem.code(),
            Self::Outdated => return true,
            Self::SignInNeeded(_) | Self::PasswordNeeded { .. } => return false,
        };
        matches!(code, ProblemCode::Internal | ProblemCode::StoreUnavailable)
    }

    pub(super) fn into_problem(self) -> Problem {
        match self {
            Self::SignInNeeded(_) => Problem::new(ProblemCode::SignInNeeded),
            Self::PasswordNeeded {
                reason: UnlockReason::Limited(problem),
                ..
            } => problem,
            Self::PasswordNeeded { .. } => Problem::new(ProblemCode::LinkPasswordWrong),
            // It changes faster than it can be read.
            Self::Outdated => Problem::new(ProblemCode::StoreUnavailable),
            Self::Problem(problem) => problem,
        }
    }
}

/// The refusal of a method that a link does not keep.
pub(super) fn only_followed() -> Problem {
    Problem::new(ProblemCode::MethodNotAllowed).header(ALLOW, "GET,HEAD")
}

/// The same where a password can be sent.
pub(super) fn password_only() -> Problem {
    Problem::new(ProblemCode::MethodNotAllowed).header(ALLOW, "GET,HEAD,POST")
}

/// Returns what a problem counts as.
pub(super) fn outcome_of(code: ProblemCode) -> RedirectOutcome {
    match code {
        ProblemCode::LinkNotFound | ProblemCode::LinkScheduled => RedirectOutcome::Absent,
        ProblemCode::LinkGone
        | ProblemCode::LinkExpired
        | ProblemCode::LinkDisabled
        | ProblemCode::LinkExhausted => RedirectOutcome::Gone,
        ProblemCode::LinkBlocked => RedirectOutcome::Blocked,
        ProblemCode::RateLimited => RedirectOutcome::Limited,
        ProblemCode::Internal | ProblemCode::StoreUnavailable | ProblemCode::Overloaded => {
            RedirectOutcome::Error
        }
        _ => RedirectOutcome::Refused,
    }
}
