use curt_core::{Key, PortError, Revision};

use crate::admit::FieldError;

/// Why a request about links was not done.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the request is not valid: {}", listed(.0))]
    Invalid(Vec<FieldError>),
    #[error("the alias is taken")]
    AliasTaken,
    /// Absent, deleted, or somebody else's: the three are not told apart.
    #[error("there is no such link")]
    NotFound,
    #[error("the link has changed since; it is at revision {}.{} now", .0.generation, .0.version)]
    Stale(Revision),
    #[error("the idempotency key was used for a different request")]
    OnceMismatch,
    /// Of a repeated request: it had been applied, and its link has been deleted or purged since.
    #[error("the link that this request made, {0}, is no more")]
    CreatedAndGone(Key),
    #[error("no free key was found; try again")]
    KeysExhausted,
    #[error(transparent)]
    Store(#[from] PortError),
}

fn listed(mistakes: &[FieldError]) -> String {
    let messages: Vec<&str> = mistakes
        .iter()
        .map(|mistake| mistake.message.as_str())
        .collect();
    messages.join(" ")
}
