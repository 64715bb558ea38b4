//! What Redis's errors mean for the caller.

use curt_core::{ErrorKind, PortError};
use redis::{ErrorKind as RedisKind, RedisError};

use super::{BACKEND, connect};

/// Refusals that no later call changes: accounts, permissions, and what else lies under our names.
const LASTING: [&str; 10] = [
    "NOAUTH",
    "WRONGPASS",
    "NOPERM",
    "WRONGTYPE",
    "MOVED",
    "ASK",
    "CROSSSLOT",
    "NOPROTO",
    "ERR",
    "DENIED",
];

/// Nothing was asked yet.
pub(super) fn of_connecting(error: RedisError) -> PortError {
    let kind = match error.kind() {
        RedisKind::AuthenticationFailed | RedisKind::InvalidClientConfig => ErrorKind::Invalid,
        _ if is_lasting(&error) => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    };
    PortError::new(kind, BACKEND, connect::OP, error.to_string()).with_source(error)
}

pub(super) fn of_command(op: &'static str, error: RedisError) -> PortError {
    let kind = match error.kind() {
        // Whether by silence or by a closed connection: the command was on its way.
        RedisKind::Io => ErrorKind::Timeout,
        RedisKind::Parse | RedisKind::UnexpectedReturnType => ErrorKind::Corrupt,
        RedisKind::AuthenticationFailed => ErrorKind::Invalid,
        _ if error.code() == Some("BUSY") => ErrorKind::Throttled,
        _ if is_lasting(&error) => ErrorKind::Invalid,
        // READONLY, NOREPLICAS, LOADING, MASTERDOWN, MISCONF, OOM, and what later versions add.
        _ => ErrorKind::Unavailable,
    };
    PortError::new(kind, BACKEND, op, error.to_string()).with_source(error)
}

fn is_lasting(error: &RedisError) -> bool {
    // Before version 7, an error inside of a script comes wrapped into one of the script's.
    let is_wrapped = error.detail().is_some_and(|detail| detail.contains(": -"));
    error.code().is_some_and(|code| LASTING.contains(&code)) && !is_wrapped
}
