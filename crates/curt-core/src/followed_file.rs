//! When to read a file again. Looking at it and reading it are the caller's.

use std::fs::Metadata;
use std::io;
use std::time::{Duration, SystemTime};

/// Two writes within the grain of a file system's clock look like one. A file that was written so short a time ago is
/// read once more.
const STAMP_GRAIN: Duration = Duration::from_secs(3);

/// What is known of a file that is looked at from time to time. What it said stays in force until it can be read again.
#[derive(Clone, Debug)]
pub struct FollowedFile {
    /// What the file looked like when it was read; `None`: read it again.
    seen: Option<Stamp>,
    /// The last failure, so that one that lasts is told once.
    failure: Option<String>,
}

/// What a look at a file found.
#[derive(Debug)]
pub enum Looked<T> {
    /// It has not changed, or still cannot be used for the reason that was told.
    Unchanged,
    Loaded(T),
    Failed(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: SystemTime,
}

impl FollowedFile {
    /// Follows a file that is read for the first time after `metadata` was asked for.
    #[must_use]
    pub fn new(metadata: &io::Result<Metadata>) -> Self {
        Self {
            seen: Stamp::of(metadata),
            failure: None,
        }
    }

    /// Calls `load` if the file may have changed. `metadata` is asked for before: what is written while the file is read is
    /// then seen next time.
    pub fn look<T>(
        &mut self,
        metadata: &io::Result<Metadata>,
        load: impl FnOnce() -> Result<T, String>,
    ) -> Looked<T> {
        let stamp = Stamp::of(metadata);
        let is_known = stamp.is_some() && stamp == self.seen;
        self.seen = stamp;
        if is_known {
            return Looked::Unchanged;
        }
        match load() {
            Ok(loaded) => {
                self.failure = None;
                Looked::Loaded(loaded)
            }
            Err(failure) if self.failure.as_ref() == Some(&failure) => Looked::Unchanged,
            Err(failure) => {
                self.failure = Some(failure.clone());
                Looked::Failed(failure)
            }
        }
    }
}

impl Stamp {
    fn of(metadata: &io::Result<Metadata>) -> Option<Self> {
        let found = metadata.as_ref().ok()?;
        let modified = found.modified().ok()?;
        #[expect(
            clippy::disallowed_methods,
            reason = "compared with the time of the file system"
        )]
        let age = SystemTime::now().duration_since(modified).ok()?;
        (age > STAMP_GRAIN).then_some(Self {
            bytes: found.len(),
            modified,
        })
    }
}
