//! Why a supply cannot be opened or stocked. To take from it never fails: it falls back to random keys and says so.

use curt_core::PortError;

use crate::settings::Strategy;

/// A supply could not be opened or stocked.
#[derive(Debug, thiserror::Error)]
pub enum KeySupplyError {
    /// A setting is wrong; the text names it.
    #[error("{0}")]
    Settings(String),
    /// The strategy needs an engine that was not given.
    #[error("the key strategy {strategy} needs {needs}")]
    Missing {
        strategy: &'static str,
        needs: &'static str,
    },
    /// Another process is at it.
    #[error("another process looks after {0} at the moment: try again when it has ended")]
    Busy(&'static str),
    #[error("all keys of this length are written: use longer keys (keys.length)")]
    NoMoreKeys,
    #[error("the key strategy {0} has no key files: they belong to the strategy file")]
    NoFiles(Strategy),
    #[error(transparent)]
    Port(#[from] PortError),
}
