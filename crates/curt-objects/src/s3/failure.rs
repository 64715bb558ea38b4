//! What the service's refusals and the line's failures mean for the caller.

use std::io::ErrorKind as IoKind;

use curt_core::{ErrorKind, PortError};
use ureq::{Error, Timeout};

use super::reply::Reply;
use crate::key_layout::Operation;

pub(super) fn of_line(operation: Operation, host: &str, error: Error) -> PortError {
    let kind = match &error {
        Error::HostNotFound
        | Error::ConnectionFailed
        | Error::Tls(_)
        | Error::Rustls(_)
        | Error::Timeout(Timeout::Resolve | Timeout::Connect) => ErrorKind::Unavailable,
        Error::Io(error) if is_before_asking(error.kind()) => ErrorKind::Unavailable,
        Error::BadUri(_) | Error::Http(_) | Error::InvalidProxyUrl => ErrorKind::Invalid,
        // Whether by silence or by a closed connection: the request was on its way.
        _ => ErrorKind::Timeout,
    };
    let detail = format!("{host} does not answer: {error}");
    operation.error(kind, detail).with_source(error)
}

fn is_before_asking(kind: IoKind) -> bool {
    matches!(
        kind,
        IoKind::ConnectionRefused
            | IoKind::HostUnreachable
            | IoKind::NetworkUnreachable
            | IoKind::AddrNotAvailable
    )
}

/// An answer that is none of those that were expected.
pub(super) fn of_reply(operation: Operation, reply: &Reply) -> PortError {
    let (code, message) = reply.refusal();
    let kind = match (reply.status, &*code) {
        (_, "SlowDown" | "RequestLimitExceeded") | (429, _) => ErrorKind::Throttled,
        // Asked too early or too late, cut off on the way, or two at once: another time it works.
        (_, "RequestTimeout" | "OperationAborted" | "ConditionalRequestConflict") => {
            ErrorKind::Unavailable
        }
        (400..500, _) => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    };
    let way_out = match &*code {
        "NoSuchBucket" => "; make the bucket first",
        "AccessDenied" | "InvalidAccessKeyId" | "SignatureDoesNotMatch" => {
            "; check the credentials, what they allow, and this machine's clock"
        }
        "RequestTimeTooSkewed" => "; set this machine's clock",
        "PermanentRedirect" | "AuthorizationHeaderMalformed" => "; check the region",
        _ => "",
    };
    let status = reply.status;
    let detail = format!("the service answered {status} {code}: {message}{way_out}");
    operation.error(kind, detail)
}
