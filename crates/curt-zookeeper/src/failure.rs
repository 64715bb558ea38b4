//! What ZooKeeper's errors mean for the caller.

use curt_core::{ErrorKind, PortError};
use zookeeper_client::Error;

use super::BACKEND;

/// Nothing was asked yet.
pub(super) fn of_connecting(error: Error) -> PortError {
    let kind = match error {
        Error::AuthFailed | Error::NoAuth | Error::BadArguments(_) => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    };
    PortError::new(kind, BACKEND, "begin a session", error.to_string()).with_source(error)
}

pub(super) fn of_operation(op: &'static str, error: Error) -> PortError {
    let kind = match error {
        _ if is_unknown(&error) => ErrorKind::Timeout,
        Error::Throttled => ErrorKind::Throttled,
        Error::NotReadOnly | Error::QuotaExceeded | Error::NoHosts => ErrorKind::Unavailable,
        Error::NoAuth
        | Error::AuthFailed
        | Error::InvalidAcl
        | Error::BadArguments(_)
        | Error::NoChildrenForEphemerals
        | Error::Unimplemented => ErrorKind::Invalid,
        Error::UnmarshalError { .. } | Error::MarshallingError => ErrorKind::Corrupt,
        _ => ErrorKind::Bug,
    };
    let detail = match error {
        Error::Timeout => "no answer in time: it is unknown whether it was done".into(),
        _ => error.to_string(),
    };
    PortError::new(kind, BACKEND, op, detail).with_source(error)
}

/// Whether the request may have been carried out. A session that ends takes requests with it that were sent.
pub(super) fn is_unknown(error: &Error) -> bool {
    is_interrupted(error) || matches!(error, Error::SessionExpired | Error::ClientClosed)
}

/// Whether the connection broke and the session may go on.
pub(super) fn is_interrupted(error: &Error) -> bool {
    matches!(
        error,
        Error::ConnectionLoss
            | Error::Timeout
            | Error::SessionMoved
            | Error::UnexpectedError(_)
            | Error::Custom(_)
    )
}
