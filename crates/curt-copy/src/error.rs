use std::fmt;

use curt_core::PortError;

/// Which of the two stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Source,
    Destination,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "the source",
            Self::Destination => "the destination",
        })
    }
}

/// Why a copy did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("{side}: {error}")]
    Port {
        side: Side,
        #[source]
        error: PortError,
    },
    #[error("{0}")]
    Refused(String),
    #[error("another copy into this destination is running")]
    TakenOver,
    #[error("stopped: --resume goes on")]
    Stopped,
    #[error("{0}")]
    Differs(String),
}

impl CopyError {
    pub(crate) fn at(side: Side) -> impl Fn(PortError) -> Self {
        move |error| Self::Port { side, error }
    }
}
