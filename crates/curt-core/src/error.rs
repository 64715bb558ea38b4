//! What an adapter says when it cannot do as asked.
//!
//! Callers branch on [`ErrorKind`], never on text. An answer such as "no such link" or "alias taken" is not an
//! error: ports return it as a value.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// What a failure means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The engine refuses more work for now.
    Throttled,
    /// No answer in time: it is unknown whether the effect happened.
    Timeout,
    /// The engine cannot be reached, is read-only, or its disk is full. Nothing was changed.
    Unavailable,
    /// The write was routed by an old shard map: the engine is no longer the owner. Nothing was changed, and the same call
    /// will be refused again; load the map and ask the owner that it names.
    StaleEpoch,
    /// What was read is not what was written.
    Corrupt,
    /// The request itself cannot be served, now or later: a wrong setting or a wrong argument.
    Invalid,
    /// A broken promise between our own parts.
    Bug,
}

impl ErrorKind {
    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Throttled | Self::Timeout | Self::Unavailable)
    }

    /// Whether a write that failed so has certainly changed nothing, so that what it would have used up is still free.
    #[must_use]
    pub fn is_without_effect(self) -> bool {
        matches!(
            self,
            Self::Throttled | Self::Unavailable | Self::StaleEpoch | Self::Invalid
        )
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::StaleEpoch => "stale_epoch",
            Self::Corrupt => "corrupt",
            Self::Invalid => "invalid",
            Self::Bug => "bug",
        }
    }
}

/// A failure of an engine behind a port. Clones share their source: one failure may be the answer to many requests.
#[derive(Clone, Debug)]
pub struct PortError {
    pub kind: ErrorKind,
    /// What was asked, as a verb phrase: "insert links".
    pub op: &'static str,
    /// The adapter's name: "sqlite".
    pub backend: &'static str,
    /// One sentence for the operator, with the way out where one is known.
    pub detail: String,
    /// The region that would have had to take it, where that is another one.
    pub region: Option<Box<str>>,
    pub source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl PortError {
    pub fn new(
        kind: ErrorKind,
        backend: &'static str,
        op: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            op,
            backend,
            detail: detail.into(),
            region: None,
            source: None,
        }
    }

    /// A write to a link whose shard has another owner by now.
    #[must_use]
    pub fn stale_epoch(backend: &'static str, op: &'static str) -> Self {
        let detail = "another node owns the shard: load the shard map";
        Self::new(ErrorKind::StaleEpoch, backend, op, detail)
    }

    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into().into());
        self
    }

    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.kind.is_transient()
    }
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            backend,
            op,
            detail,
            ..
        } = self;
        write!(f, "{backend} could not {op}: {detail}")
    }
}

impl StdError for PortError {
    /// Returns the driver's error itself and not the [`Arc`] around it, so that it can be downcast.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

pub type PortResult<T> = Result<T, PortError>;
