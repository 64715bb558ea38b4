//! What the errors of MySQL and MariaDB mean for a caller, in words that say what to do.

use curt_core::{ErrorKind, PortError};
use mysql_async::{Error, ServerError};

use curt_adapter_kit::Effect;

pub(super) const BACKEND: &str = "mysql";

/// A key that a unique index holds already.
pub(super) const DUPLICATE: u16 = 1062;

pub(super) fn failed(op: &'static str, address: &str, effect: Effect, error: Error) -> PortError {
    let (kind, detail) = match &error {
        Error::Server(told) => explain(told, address),
        Error::Io(_) | Error::Driver(_) => effect.of_breaking_off(&address),
        Error::Url(_) => (ErrorKind::Invalid, format!("{address} is no address")),
        Error::Other(why) => (ErrorKind::Bug, format!("{why}; please report this")),
    };
    PortError::new(kind, BACKEND, op, detail).with_source(error)
}

/// A call that got no answer before its deadline.
pub(super) fn too_late(op: &'static str, address: &str, effect: Effect) -> PortError {
    let (kind, detail) = effect.of_breaking_off(&address);
    PortError::new(kind, BACKEND, op, detail)
}

/// A call that found no connection: nothing was asked of the engine.
pub(super) fn no_connection(op: &'static str, address: &str, error: Error) -> PortError {
    match &error {
        Error::Server(_) => failed(op, address, Effect::None, error),
        _ => away(op, address).with_source(error),
    }
}

pub(super) fn away(op: &'static str, address: &str) -> PortError {
    let detail = format!("{address} does not answer: check that it runs and can be reached");
    PortError::new(ErrorKind::Unavailable, BACKEND, op, detail)
}

fn explain(told: &ServerError, address: &str) -> (ErrorKind, String) {
    let words = &told.message;
    match told.code {
        1040 | 1203 => (
            ErrorKind::Throttled,
            format!("{address} has no connection left: raise its max_connections, or use fewer"),
        ),
        1205 | 1213 => (
            ErrorKind::Throttled,
            format!("others were in the way at {address}; nothing was changed"),
        ),
        1044 | 1045 | 1049 | 1142 | 1146 => (
            ErrorKind::Invalid,
            format!("{address} refuses us ({words}): check user, password, database and rights"),
        ),
        // Stopping, read-only, out of space or memory, or too slow.
        1021 | 1037 | 1041 | 1053 | 1114 | 1290 | 1317 | 1792 | 1836 | 1969 | 3024 => (
            ErrorKind::Unavailable,
            format!("{address} cannot write: {words}"),
        ),
        _ => (
            ErrorKind::Bug,
            format!("the statement cannot be run ({words}); please report this"),
        ),
    }
}
