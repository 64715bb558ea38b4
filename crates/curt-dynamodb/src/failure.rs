//! What DynamoDB's errors mean for a caller, in words that say what to do.

use std::error::Error as StdError;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use curt_adapter_kit::Effect;
use curt_core::{ErrorKind, PortError};

use crate::address::Route;

pub(crate) const BACKEND: &str = "dynamodb";

/// The condition of a write did not hold.
pub(crate) const CONDITION: &str = "ConditionalCheckFailedException";

/// Codes of requests that were refused because more came than the table or the account allows.
const THROTTLED: [&str; 4] = [
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "LimitExceededException",
];
/// Codes of writes that met a transaction on the same item, which goes on.
const CONFLICTS: [&str; 3] = [
    "TransactionConflictException",
    "TransactionInProgressException",
    "ReplicatedWriteConflictException",
];
const REFUSED_ACCOUNT: [&str; 7] = [
    "AccessDeniedException",
    "ExpiredTokenException",
    "IncompleteSignatureException",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "OptInRequired",
    "UnrecognizedClientException",
];

pub(crate) fn is_conflict(code: Option<&str>) -> bool {
    code.is_some_and(|code| CONFLICTS.contains(&code))
}

/// A request that failed. `effect` says what it may have done if nobody knows.
pub(crate) fn failed<E>(
    op: &'static str,
    route: &Route,
    effect: Effect,
    error: SdkError<E>,
) -> PortError
where
    E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
{
    let (kind, detail) = match &error {
        SdkError::ServiceError(told) => {
            let status = told.raw().status().as_u16();
            explain(route, effect, told.err(), status)
        }
        SdkError::DispatchFailure(_) if was_not_sent(&error) => (
            ErrorKind::Unavailable,
            format!("{route} cannot be reached; nothing was changed"),
        ),
        SdkError::ConstructionFailure(_) => (
            ErrorKind::Bug,
            "the request cannot be made; please report this".to_owned(),
        ),
        _ => effect.of_breaking_off(route),
    };
    PortError::new(kind, BACKEND, op, detail).with_source(error)
}

fn explain(
    route: &Route,
    effect: Effect,
    told: &impl ProvideErrorMetadata,
    status: u16,
) -> (ErrorKind, String) {
    let code = told.code().unwrap_or("an unnamed error");
    let words = told.message().unwrap_or_default();
    match code {
        _ if THROTTLED.contains(&code) => throttled(route, code),
        _ if CONFLICTS.contains(&code) => (
            ErrorKind::Throttled,
            format!("{route}: a transaction holds the item; nothing was changed"),
        ),
        "ResourceNotFoundException" => (
            ErrorKind::Unavailable,
            format!("{route} lacks a table ({words}): run `curt migrate`"),
        ),
        _ if REFUSED_ACCOUNT.contains(&code) => (
            ErrorKind::Unavailable,
            format!("{route} refuses the credentials: {code}: {words}"),
        ),
        _ if status >= 500 => effect.of_breaking_off(route),
        _ => (
            ErrorKind::Bug,
            format!("{route} cannot do this: {code}: {words}; please report this"),
        ),
    }
}

pub(crate) fn throttled(route: &Route, code: &str) -> (ErrorKind, String) {
    (
        ErrorKind::Throttled,
        format!("{route} refuses more work ({code}); nothing was changed"),
    )
}

/// Whether no connection was made.
fn was_not_sent(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let refused = error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
        // The client has no type for it.
        if refused || error.to_string().starts_with("HTTP connect timeout") {
            return true;
        }
        next = error.source();
    }
    false
}

/// What was read is not what this version writes.
pub(crate) fn corrupt(op: &'static str, what: impl std::fmt::Display) -> PortError {
    let detail = format!("an item holds what this version does not write: {what}");
    PortError::new(ErrorKind::Corrupt, BACKEND, op, detail)
}
