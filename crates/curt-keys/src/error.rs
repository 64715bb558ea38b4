//! Why a supply cannot be opened. Once open, it never fails: it falls back to random keys and says so.

use curt_core::PortError;

/// A supply could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A setting is wrong; the text names it.
    #[error("{0}")]
    Settings(String),
    /// The strategy needs an engine that was not given.
    #[error("the key strategy {strategy} needs {needs}")]
    Missing {
        strategy: &'static str,
        needs: &'static str,
    },
    #[error(transparent)]
    Port(#[from] PortError),
}
