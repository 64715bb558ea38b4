//! Failures of the parts below, as problems: one exhaustive match each.

use curt_accounts::AccountError;
use curt_core::names::event;
use curt_core::{EffectiveState, ErrorKind, Field, FieldError, PortError, RepeatLimiter, Revision};
use curt_links::{AliasHolder, LinkError};

use super::{InvalidField, Problem, ProblemCode};
use crate::api::{REPLAYED, revision::etag};
use crate::rate_limit;

/// One line per kind of failure and ten seconds; `curt_store_errors_total` counts all.
static FAILURES: RepeatLimiter = RepeatLimiter::new();

impl Problem {
    /// Tells mistakes by the names that the interface's clients know the fields by.
    pub(crate) fn mistakes(mistakes: Vec<FieldError>, name: fn(Field) -> &'static str) -> Self {
        let told = |mistake: FieldError| {
            InvalidField::new(name(mistake.field), mistake.code, mistake.message)
        };
        Self::invalid(mistakes.into_iter().map(told).collect())
    }
}

/// Returns the field's name in the REST API.
pub(crate) fn field_name(field: Field) -> &'static str {
    match field {
        Field::Status => "redirect_status",
        field => field.name(),
    }
}

impl From<LinkError> for Problem {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Invalid(mistakes) => Self::mistakes(mistakes, field_name),
            LinkError::InvalidItem { at, mistakes } => {
                Self::mistakes(mistakes, field_name).within_part(&format!("links[{at}]"))
            }
            LinkError::QuotaExceeded(decision) => rate_limit::refused(&decision),
            LinkError::AliasTaken(holder) => {
                Self::new(ProblemCode::AliasTaken).detail(alias_holder(holder))
            }
            LinkError::Deleted => Self::new(ProblemCode::LinkGone)
                .detail("You deleted this link. To use it again, restore it first."),
            LinkError::NotFound => Self::new(ProblemCode::LinkNotFound),
            LinkError::Stale(now) => stale(Some(now)),
            LinkError::IdempotencyMismatch => Self::new(ProblemCode::IdempotencyMismatch),
            LinkError::CreatedAndGone(key) => Self::new(ProblemCode::CreatedLinkGone)
                .detail(format!(
                    "The link {key}, which this request made before, has been deleted or purged."
                ))
                .header(REPLAYED, "true"),
            LinkError::KeysExhausted => Self::new(ProblemCode::KeysExhausted),
            LinkError::Store(error) => error.into(),
        }
    }
}

/// What the creator of a link is told about their own links only.
fn alias_holder(holder: AliasHolder) -> &'static str {
    match holder {
        AliasHolder::Another => "Another link has this alias.",
        AliasHolder::Own(EffectiveState::Deleted) => {
            "A link that you deleted has this alias. Restore it, or choose another alias."
        }
        AliasHolder::Own(EffectiveState::Expired) => {
            "A link of yours that has expired has this alias. Renew it, or choose another alias."
        }
        AliasHolder::Own(_) => "Another link of yours has this alias.",
        AliasHolder::OwnPurged => {
            "A link of yours had this alias and was purged. An alias is not given to a second link: choose another one."
        }
    }
}

/// Of users and what belongs to them.
impl From<AccountError> for Problem {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Invalid(mistakes) => Self::mistakes(mistakes, field_name),
            AccountError::EmailTaken => Self::new(ProblemCode::EmailTaken),
            AccountError::KeyNameTaken => Self::new(ProblemCode::KeyNameTaken),
            AccountError::TooMany => Self::new(ProblemCode::TooMany),
            AccountError::WrongCredentials => Self::new(ProblemCode::WrongCredentials),
            AccountError::SignUpClosed => Self::new(ProblemCode::SignUpClosed),
            AccountError::InviteInvalid => Self::new(ProblemCode::InviteInvalid),
            AccountError::SetupClosed | AccountError::NotFound => Self::new(ProblemCode::NotFound),
            AccountError::IssuerEnded => Self::new(ProblemCode::CredentialsInvalid),
            AccountError::NotItsKey => Self::new(ProblemCode::ScopeMissing).detail(
                "An API key replaces only itself and the keys that it made. For others, sign in, or use a key with \
                 the scope \"admin\" and without a limit.",
            ),
            AccountError::EndsItself => Self::new(ProblemCode::ScopeMissing).detail(
                "This API key was made with the one that is to be revoked, and would end with it. Let the old one run \
                 out, or sign in to revoke it.",
            ),
            AccountError::Stale => Self::new(ProblemCode::StaleAccount),
            AccountError::LastAdmin => {
                let why = "This is the last administrator: make another user one first.";
                Self::invalid_field("id", "last_admin", why)
            }
            AccountError::Store(error) => error.into(),
        }
    }
}

/// The revision that an `If-Match` named is not the link's, which is at `now`.
pub(super) fn stale(now: Option<Revision>) -> Problem {
    let problem = Problem::new(ProblemCode::StaleRevision);
    match now {
        Some(now) => problem.etag(etag(now)),
        None => problem,
    }
}

/// The client learns what to do; the operator, from the log, what happened.
impl From<PortError> for Problem {
    fn from(error: PortError) -> Self {
        let code = match error.kind {
            ErrorKind::Throttled => {
                // Not an error of ours, and whoever causes it could fill the log.
                tracing::debug!(event = event::REQUEST_FAILED, %error, "request refused under load");
                return Self::new(ProblemCode::Overloaded);
            }
            ErrorKind::Timeout | ErrorKind::Unavailable | ErrorKind::StaleEpoch => {
                ProblemCode::StoreUnavailable
            }
            ErrorKind::Corrupt | ErrorKind::Invalid | ErrorKind::Bug => ProblemCode::Internal,
        };
        if let Some(left_out) = FAILURES.admit(&error) {
            tracing::error!(
                event = event::REQUEST_FAILED,
                kind = error.kind.as_str(),
                backend = error.backend,
                left_out,
                %error,
                "request failed in a store"
            );
        }
        match (code, error.region) {
            (ProblemCode::StoreUnavailable, Some(region)) => Self::new(code).detail(format!(
                "This link is written in the region {region}, which cannot be reached from here. Links that exist go on \
                 redirecting, and links with generated keys can be created. Try again after the time in Retry-After, or \
                 choose another alias."
            )),
            _ => Self::new(code),
        }
    }
}
