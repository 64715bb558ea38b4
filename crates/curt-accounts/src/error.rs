use curt_core::{ErrorKind, FieldError, FieldErrors, PortError};

/// Why an account, or something that belongs to one, is not as asked for.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("{}", FieldErrors::list(.0))]
    Invalid(Vec<FieldError>),
    #[error("another user has this email")]
    EmailTaken,
    #[error("this user already has a key of that name: revoke it or choose another name")]
    KeyNameTaken,
    /// It ended between its recognition and the end of what it asked for.
    #[error("the API key that asks for this has ended")]
    IssuerEnded,
    #[error(
        "an API key replaces itself and keys that it made, unless it is without limit and has the scope \"admin\""
    )]
    NotItsKey,
    #[error(
        "the API key that asks for this was made by the one to be revoked, and would end with it"
    )]
    EndsItself,
    #[error("there are too many of these already: remove some first")]
    TooMany,
    /// Deliberately one error for an unknown email, a wrong password and a disabled user.
    #[error("email or password is wrong")]
    WrongCredentials,
    #[error("signing up is not open")]
    SignUpClosed,
    #[error("the invitation is unknown, used or expired")]
    InviteInvalid,
    /// Deliberately one error for a wrong token and for a server that is set up already.
    #[error("there is nothing to set up")]
    SetupClosed,
    #[error("this is the last administrator: make another user one first")]
    LastAdmin,
    #[error("it was changed in between: look again")]
    Stale,
    #[error("there is no such thing, or it has ended already")]
    NotFound,
    #[error(transparent)]
    Store(#[from] PortError),
}

/// Random names and conditional writes tried before giving up; a second try is already a rarity.
pub(crate) const TRIES_MAX: usize = 8;

pub(crate) fn exhausted(op: &'static str) -> AccountError {
    let detail = format!(
        "{TRIES_MAX} tries in a row met something taken: the store or the random source is broken"
    );
    PortError::new(ErrorKind::Bug, "accounts", op, detail).into()
}
