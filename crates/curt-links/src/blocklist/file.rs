//! The file behind the list, and looking at it again from time to time.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use curt_core::limits::BLOCKLIST_BYTES_MAX;
use curt_core::names::event;
use curt_core::{FollowedFile, Looked};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::{Blocklist, LineError};
use crate::policy::LinkPolicy;

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
    file: FollowedFile,
}

impl BlocklistFile {
    /// Reads the file and puts the list in force. Reads on the calling thread: for the start.
    pub fn open(path: &Path, policy: Arc<LinkPolicy>) -> Result<Self, BlocklistError> {
        let file = FollowedFile::new(&fs::metadata(path));
        policy.block(Blocklist::load(path)?);
        Ok(Self {
            path: path.to_owned(),
            policy,
            file,
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
        let (path, mut file) = (self.path.clone(), self.file.clone());
        // Reading and parsing may take a while.
        let looked = tokio::task::spawn_blocking(move || {
            let load = || Blocklist::load(&path).map_err(|error| described(&error));
            let looked = file.look(&fs::metadata(&path), load);
            (file, looked)
        });
        let Ok((file, looked)) = looked.await else {
            return; // The process is going down.
        };
        self.file = file;
        match looked {
            Looked::Unchanged => {}
            Looked::Loaded(list) => self.take(list),
            Looked::Failed(error) => {
                tracing::error!(
                    event = event::BLOCKLIST_REFUSED,
                    error,
                    "blocklist refused, keeping previous one"
                );
            }
        }
    }

    fn take(&self, list: Blocklist) {
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
}

fn described(error: &BlocklistError) -> String {
    match error {
        BlocklistError::Unreadable { source, .. } => format!("{error}: {source}"),
        BlocklistError::TooLarge(_) | BlocklistError::Malformed { .. } => error.to_string(),
    }
}
