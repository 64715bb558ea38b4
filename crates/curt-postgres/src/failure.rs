//! What PostgreSQL's errors mean for a caller, in words that say what to do.

use curt_core::{ErrorKind, PortError};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use super::address::Address;
use curt_adapter_kit::Effect;

pub(super) const BACKEND: &str = "postgres";

/// A call that found no connection in time: nothing was asked of the engine.
pub(super) fn all_busy(op: &'static str, address: &Address) -> PortError {
    let detail = format!(
        "all connections to {address} are busy: look for what keeps them, or allow more ([postgres] in the settings)"
    );
    PortError::new(ErrorKind::Throttled, BACKEND, op, detail)
}

/// A call that no host let in before its deadline.
pub(super) fn no_answer(op: &'static str, address: &Address) -> PortError {
    let detail =
        format!("{address} does not answer in time: check that it runs and can be reached");
    PortError::new(ErrorKind::Unavailable, BACKEND, op, detail)
}

/// Why one host refuses a login. Such a failure is always transient: however wrong a setting or a password is, it may have
/// been right before, and others may mend it while this process waits.
pub(super) fn login_refusal(error: &Error) -> String {
    let Some(told) = error.as_db_error() else {
        return words_of(error);
    };
    let way_out = match told.code().code() {
        "53300" => ": raise its max_connections, or use fewer ([postgres] in the settings)",
        "3D000" => ": make the database, or name another one",
        code if code.starts_with("28") => ": check user, password and LOGIN",
        _ => "",
    };
    format!("{}{way_out}", told.message())
}

/// The innermost words: the driver's own say only at which step it was.
fn words_of(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

/// A call that broke off after it was sent.
pub(super) fn failed(
    op: &'static str,
    address: &Address,
    effect: Effect,
    error: Error,
) -> PortError {
    let (kind, detail) = match error.as_db_error() {
        Some(told) => explain(told, address),
        None if is_connection(&error) => effect.of_breaking_off(address),
        None => (
            ErrorKind::Corrupt,
            format!("{address} holds what this version does not write"),
        ),
    };
    // The engine ends every session when it stops, also one that has just committed.
    let (kind, detail) = match error.code() {
        Some(code) if is_shutdown(code) || *code == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN => {
            effect.of_breaking_off(address)
        }
        _ => (kind, detail),
    };
    PortError::new(kind, BACKEND, op, detail).with_source(error)
}

/// A call that got no answer before its deadline.
pub(super) fn too_late(op: &'static str, address: &Address, effect: Effect) -> PortError {
    let (kind, detail) = effect.of_breaking_off(address);
    PortError::new(kind, BACKEND, op, detail)
}

/// Whether the connection should not be used again: the engine behind it no longer takes writes, or is going away.
pub(super) fn spoils_connection(error: &Error) -> bool {
    match error.code() {
        Some(code) => *code == SqlState::READ_ONLY_SQL_TRANSACTION || is_shutdown(code),
        None => true,
    }
}

/// Whether the engine rolled back the whole transaction because of others: it may be run again as it is.
pub(super) fn is_rolled_back(error: &PortError) -> bool {
    sql_state(error).is_some_and(|code| {
        *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
    })
}

/// The engine's own code for what went wrong, if it said one.
pub(super) fn sql_state(error: &PortError) -> Option<&SqlState> {
    error.source.as_ref()?.downcast_ref::<Error>()?.code()
}

/// A failure that can be told to every caller of a group.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    kind: ErrorKind,
    op: &'static str,
    detail: String,
    cause: Option<Cause>,
}

/// The engine's own words. The driver's error cannot be shared between several callers, this can.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(String);

impl From<PortError> for Shared {
    fn from(error: PortError) -> Self {
        Self {
            kind: error.kind,
            op: error.op,
            detail: error.detail,
            cause: error.source.map(|source| Cause(source.to_string())),
        }
    }
}

impl Shared {
    pub(super) fn for_caller(&self) -> PortError {
        let error = PortError::new(self.kind, BACKEND, self.op, self.detail.clone());
        match &self.cause {
            Some(cause) => error.with_source(cause.clone()),
            None => error,
        }
    }
}

/// Errors without the engine's own words that come from the connection and not from a value.
fn is_connection(error: &Error) -> bool {
    error.is_closed()
        || std::error::Error::source(error)
            .is_some_and(|source| source.downcast_ref::<std::io::Error>().is_some())
}

fn is_shutdown(code: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ]
    .contains(code)
}

fn explain(told: &DbError, address: &Address) -> (ErrorKind, String) {
    let code = told.code().code();
    let words = told.message();
    match code {
        "25006" => (
            ErrorKind::Unavailable,
            format!("{address} takes no writes: it is a standby, or was demoted"),
        ),
        "53300" => (
            ErrorKind::Throttled,
            format!("{address} has no connection left: raise its max_connections, or use fewer"),
        ),
        "53100" => (
            ErrorKind::Unavailable,
            format!("the disk of {address} is full: free space there"),
        ),
        "57014" => (
            ErrorKind::Unavailable,
            format!("{address} took too long and gave up; nothing was changed"),
        ),
        "42P01" | "42501" => (
            ErrorKind::Invalid,
            format!("{words}: run `curt migrate` as the owner of {address}"),
        ),
        "23514" => (
            ErrorKind::Bug,
            format!("a promise is broken ({words}); nothing was changed, please report this"),
        ),
        _ => by_class(code, words, address),
    }
}

fn by_class(code: &str, words: &str, address: &Address) -> (ErrorKind, String) {
    match code.get(..2) {
        // Conflicts between transactions, and locks that others hold.
        Some("40" | "55") => (
            ErrorKind::Throttled,
            format!("others were in the way at {address} ({words}); nothing was changed"),
        ),
        Some("08" | "53" | "57" | "58") => (
            ErrorKind::Unavailable,
            format!("{address} is in trouble: {words}"),
        ),
        Some("XX") => (
            ErrorKind::Corrupt,
            format!("{address} found damage: {words}; restore a backup"),
        ),
        _ => (
            ErrorKind::Bug,
            "the statement cannot be run; please report this".to_owned(),
        ),
    }
}
