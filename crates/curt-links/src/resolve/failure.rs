use std::sync::Arc;

use curt_core::error::{ErrorKind, PortError};

/// A failure that several requests share: a [`PortError`] owns its source and cannot be cloned.
#[derive(Clone, Debug)]
pub(super) struct SharedFailure {
    kind: ErrorKind,
    op: &'static str,
    backend: &'static str,
    detail: Arc<str>,
}

impl SharedFailure {
    pub(super) fn of(failure: &PortError) -> Self {
        Self {
            kind: failure.kind,
            op: failure.op,
            backend: failure.backend,
            detail: failure.detail.as_str().into(),
        }
    }

    pub(super) fn into_port_error(self) -> PortError {
        PortError::new(self.kind, self.backend, self.op, &*self.detail)
    }
}
