//! Failures of statements that several callers share.

use curt_core::{ErrorKind, PortError};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::postgres::failure::BACKEND;

/// A failure that can be told to every caller.
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
            cause: error.source.map(|source| Cause(source.to_string())),
            detail: error.detail,
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

/// Whether the engine undid everything because others were there first.
pub(super) fn undone_by_others(error: &PortError) -> bool {
    let told = error
        .source
        .as_ref()
        .and_then(|source| source.downcast_ref::<Error>())
        .and_then(Error::as_db_error);
    told.is_some_and(|told| {
        told.constraint() == Some("once_as_a_whole")
            || *told.code() == SqlState::T_R_DEADLOCK_DETECTED
    })
}
