//! What Cassandra's errors mean for a caller, in words that say what to do.

use curt_adapter_kit::Effect;
use curt_core::{ErrorKind, PortError};
use scylla::errors::{DbError, ExecutionError, NewSessionError, PrepareError, RequestAttemptError};

use crate::address::Route;

pub(crate) const BACKEND: &str = "cassandra";

/// No node let us in. Always transient: however wrong a password is, it may have been right before, and others may mend it
/// while this process waits.
pub(crate) fn of_connecting(route: &Route, error: NewSessionError) -> PortError {
    let detail = format!("no node of {route} can be used: {error}");
    PortError::new(ErrorKind::Unavailable, BACKEND, "connect", detail).with_source(error)
}

/// A statement that failed. `effect` says what it may have done if nobody knows.
pub(crate) fn failed(
    op: &'static str,
    route: &Route,
    effect: Effect,
    error: ExecutionError,
) -> PortError {
    let (kind, detail) = match &error {
        ExecutionError::LastAttemptError(error) => of_attempt(route, effect, error),
        ExecutionError::PrepareError(error) => of_preparing(route, error),
        ExecutionError::EmptyPlan | ExecutionError::ConnectionPoolError(_) => unreachable(route),
        ExecutionError::BadQuery(_) => (
            ErrorKind::Bug,
            format!("the statement cannot be sent: {error}; please report this"),
        ),
        _ => effect.of_breaking_off(route),
    };
    PortError::new(kind, BACKEND, op, detail).with_source(error)
}

/// A statement that could not be prepared: it was not run.
pub(crate) fn unprepared(op: &'static str, route: &Route, error: PrepareError) -> PortError {
    let (kind, detail) = of_preparing(route, &error);
    PortError::new(kind, BACKEND, op, detail).with_source(error)
}

/// What was read is not what this version writes.
pub(crate) fn corrupt(op: &'static str, what: impl std::fmt::Display) -> PortError {
    let detail = format!("a row holds what this version does not write: {what}");
    PortError::new(ErrorKind::Corrupt, BACKEND, op, detail)
}

fn of_preparing(route: &Route, error: &PrepareError) -> (ErrorKind, String) {
    match error {
        PrepareError::AllAttemptsFailed { first_attempt } => {
            of_attempt(route, Effect::None, first_attempt)
        }
        _ => unreachable(route),
    }
}

fn unreachable(route: &Route) -> (ErrorKind, String) {
    let detail = format!("no node of {route} can be reached: check that they run");
    (ErrorKind::Unavailable, detail)
}

fn of_attempt(route: &Route, effect: Effect, error: &RequestAttemptError) -> (ErrorKind, String) {
    match error {
        RequestAttemptError::DbError(told, words) => explain(route, effect, told, words),
        RequestAttemptError::UnableToAllocStreamId => (
            ErrorKind::Throttled,
            format!(
                "all connections to {route} are busy: allow more ([cassandra] in the settings)"
            ),
        ),
        RequestAttemptError::BrokenConnectionError(_) => effect.of_breaking_off(route),
        _ => (
            ErrorKind::Bug,
            format!("{route} and this version do not understand each other: {error}"),
        ),
    }
}

fn explain(route: &Route, effect: Effect, told: &DbError, words: &str) -> (ErrorKind, String) {
    match told {
        DbError::Unavailable {
            required, alive, ..
        } => (
            ErrorKind::Unavailable,
            format!(
                "{alive} replicas of {route} are alive and {required} are needed; nothing was changed"
            ),
        ),
        DbError::Overloaded | DbError::RateLimitReached { .. } => (
            ErrorKind::Throttled,
            format!("{route} refuses more work: {words}"),
        ),
        DbError::IsBootstrapping => (
            ErrorKind::Unavailable,
            format!("a node of {route} is still starting; nothing was changed"),
        ),
        DbError::AuthenticationError | DbError::Unauthorized => (
            ErrorKind::Unavailable,
            format!("{route} refuses the account: {words}"),
        ),
        DbError::Invalid if is_missing_table(words) => (
            ErrorKind::Unavailable,
            format!("{route} lacks a table ({words}): run `curt migrate`"),
        ),
        DbError::SyntaxError | DbError::Invalid | DbError::ConfigError => (
            ErrorKind::Bug,
            format!("{route} cannot run the statement: {words}; please report this"),
        ),
        // Timeouts and failures of replicas, during a conditional write also of its reads: it may go on by itself.
        _ => effect.of_breaking_off(route),
    }
}

fn is_missing_table(words: &str) -> bool {
    ["unconfigured table", "does not exist", "keyspace"]
        .iter()
        .any(|part| words.to_ascii_lowercase().contains(part))
}
