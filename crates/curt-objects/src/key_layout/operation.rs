use curt_core::{ErrorKind, PortError, PortResult};

/// The engine and what it was asked to do: both stand in every error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) backend: &'static str,
    pub(crate) name: &'static str,
}

impl Operation {
    /// Runs blocking work on a thread that may block.
    pub(crate) async fn off_runtime<T: Send + 'static>(
        self,
        work: impl FnOnce() -> PortResult<T> + Send + 'static,
    ) -> PortResult<T> {
        curt_adapter_kit::off_runtime(self.backend, self.name, work).await
    }

    pub(crate) fn error(self, kind: ErrorKind, detail: impl Into<String>) -> PortError {
        PortError::new(kind, self.backend, self.name, detail)
    }

    pub(crate) fn invalid(self, detail: impl Into<String>) -> PortError {
        self.error(ErrorKind::Invalid, detail)
    }

    pub(crate) fn absent(self, name: &str) -> PortError {
        self.invalid(format!("there is no key file {name:?}"))
    }

    pub(crate) fn already_published(self, name: &str) -> PortError {
        self.invalid(format!("the key file {name:?} is published already"))
    }

    pub(crate) fn half_written(self) -> PortError {
        self.invalid("an earlier call failed half-way; start the file anew")
    }

    pub(crate) fn corrupt(self, name: &str, why: &str) -> PortError {
        self.error(
            ErrorKind::Corrupt,
            format!(
                "the key file {name:?} is damaged: {why}; put it back from a copy, or move it away"
            ),
        )
    }
}
