use curt_accounts::Decision;
use curt_core::{EffectiveState, FieldError, FieldErrors, Key, PortError, Revision};

/// What has an alias that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasHolder {
    /// Another user's link, or what is left of it: which of the two is not told.
    Another,
    /// A link of the caller's own, in this state.
    Own(EffectiveState),
    /// What is left of a link of the caller's own after it was purged.
    OwnPurged,
}

/// Why a request about links was not done.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the request is not valid: {}", FieldErrors::list(.0))]
    Invalid(Vec<FieldError>),
    /// Of a bulk request, which is refused as a whole.
    #[error("item {at} is not valid: {}", FieldErrors::list(mistakes))]
    InvalidItem {
        at: usize,
        mistakes: Vec<FieldError>,
    },
    #[error("the limit {} is used up", .0.name)]
    QuotaExceeded(Decision),
    #[error("the alias is taken")]
    AliasTaken(AliasHolder),
    /// The caller's own link, which is deleted and has to be restored first.
    #[error("the link is deleted")]
    Deleted,
    /// Absent, purged, or somebody else's: the three are not told apart.
    #[error("there is no such link")]
    NotFound,
    #[error("the link has changed since; it is at revision {}.{} now", .0.generation, .0.version)]
    Stale(Revision),
    #[error("the idempotency key was used for a different request")]
    IdempotencyMismatch,
    /// Of a repeated request: it had been applied, and its link has been deleted or purged since.
    #[error("the link that this request made, {0}, is no more")]
    CreatedAndGone(Key),
    #[error("no free key was found; try again")]
    KeysExhausted,
    #[error(transparent)]
    Store(#[from] PortError),
}
