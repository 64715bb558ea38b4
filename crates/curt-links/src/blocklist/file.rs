//! The file behind the list, and looking at it again from time to time.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use curt_core::limits::BLOCKLIST_BYTES_MAX;
use curt_core::names::event;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::{Blocklist, LineError};
use crate::policy::LinkPolicy;

/// Two writes within the grain of a file system's clock look like one. A file that was written so short a time ago is
/// read once more.
const STAMP_GRAIN: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub enum BlocklistError {
    #[error("cannot read {}", .path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} has more than {BLOCKLIST_BYTES_MAX} bytes", .0.display())]
    TooLarge(PathBuf),
    #[error("{}, {mistake}", .path.display())]
    Malformed { path: PathBuf, mistake: LineError },
}

impl Blocklist {
    pub fn load(path: &Path) -> Result<Self, BlocklistError> {
        let unreadable = |source| BlocklistError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(unreadable)?;
        let mut text = Vec::new();
        file.take(BLOCKLIST_BYTES_MAX + 1)
            .read_to_end(&mut text)
            .map_err(unreadable)?;
        if text.len() as u64 > BLOCKLIST_BYTES_MAX {
            return Err(BlocklistError::TooLarge(path.to_owned()));
        }
        Self::parse(&text).map_err(|mistake| BlocklistError::Malformed {
            path: path.to_owned(),
            mistake,
        })
    }
}

/// A list that follows its file.
pub struct BlocklistFile {
    path: PathBuf,
    policy: Arc<LinkPolicy>,
    /// What the file looked like when it was read; `None`: read it again.
    seen: Option<Stamp>,
    /// The last failure, so that one that lasts is told once.
    failure: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: SystemTime,
}

impl BlocklistFile {
    /// Reads the file and puts the list in force. Reads on the calling thread: for the start.
    pub fn open(path: &Path, policy: Arc<LinkPolicy>) -> Result<Self, BlocklistError> {
        let seen = Stamp::of(path);
        policy.block(Blocklist::load(path)?);
        Ok(Self {
            path: path.to_owned(),
            policy,
            seen,
            failure: None,
        })
    }

    /// Looks at the file every so often until `stop`.
    pub async fn watch(mut self, every: Duration, stop: CancellationToken) {
        let mut looks = tokio::time::interval(every.max(Duration::from_millis(1)));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = looks.tick() => self.refresh().await,
            }
        }
    }

    /// Reads the file if it has changed. A file that cannot be used leaves the list in force as it is.
    pub async fn refresh(&mut self) {
        let (path, seen) = (self.path.clone(), self.seen);
        // Reading and parsing may take a while.
        let looked = tokio::task::spawn_blocking(move || {
            let stamp = Stamp::of(&path);
            let is_known = stamp.is_some() && stamp == seen;
            let loaded = (!is_known).then(|| Blocklist::load(&path));
            (stamp, loaded)
        });
        let Ok((stamp, loaded)) = looked.await else {
            return; // The process is going down.
        };
        self.seen = stamp;
        match loaded {
            None => {}
            Some(Ok(list)) => self.take(list),
            Some(Err(error)) => self.refuse(&error),
        }
    }

    fn take(&mut self, list: Blocklist) {
        self.failure = None;
        let entries = list.entries();
        if self.policy.block(list) {
            tracing::info!(
                event = event::BLOCKLIST_LOADED,
                path = %self.path.display(),
                entries,
                "blocklist changed"
            );
        }
    }

    fn refuse(&mut self, error: &BlocklistError) {
        let failure = described(error);
        if self.failure.as_ref() != Some(&failure) {
            tracing::error!(
                event = event::BLOCKLIST_REFUSED,
                error = failure,
                "blocklist refused, keeping previous one"
            );
            self.failure = Some(failure);
        }
    }
}

impl Stamp {
    /// To be taken before reading: what is written during it is then seen next time.
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
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

fn described(error: &BlocklistError) -> String {
    match error {
        BlocklistError::Unreadable { source, .. } => format!("{error}: {source}"),
        BlocklistError::TooLarge(_) | BlocklistError::Malformed { .. } => error.to_string(),
    }
}
