//! A store that is at rest: accounts, or clicks.

use std::sync::Arc;

use curt_core::ports::{StreamId, Transfer, Transferred};
use tokio_util::sync::CancellationToken;
use xxhash_rust::xxh3::xxh3_64;

use crate::digest::Digest;
use crate::error::CopyError;
use crate::part::{CopyProgress, CopySettings, PartReport, Run, compare, copy_noted, is_empty};
use crate::record::CopyNotes;

/// A copy of one store to another, neither of which changes meanwhile.
pub struct StoreCopy<Item> {
    /// The name of the part, as it is noted and shown.
    pub part: &'static str,
    pub from: Arc<dyn Transfer<Item>>,
    pub to: Arc<dyn Transfer<Item>>,
    pub settings: CopySettings,
}

impl<Item: Transferred> StoreCopy<Item> {
    /// Copies everything, or goes on where `notes` say.
    pub async fn run(
        &self,
        notes: &mut CopyNotes,
        stop: &CancellationToken,
        progress: &(dyn Fn(CopyProgress) + Sync),
    ) -> Result<PartReport, CopyError> {
        let run = self.begin(stop, progress);
        let report = copy_noted(run, (&*self.from, &*self.to), notes).await?;
        report.refuse_conflicts()?;
        Ok(report)
    }

    /// As [`LinkCopy::verify`](crate::LinkCopy::verify).
    pub async fn verify(
        &self,
        is_into_existing: bool,
        stop: &CancellationToken,
        progress: &(dyn Fn(CopyProgress) + Sync),
    ) -> Result<Digest, CopyError> {
        let run = self.begin(stop, progress);
        compare(run, (&*self.from, &*self.to), is_into_existing).await
    }

    /// Whether nothing is stored at the destination.
    pub async fn is_destination_empty(&self) -> Result<bool, CopyError> {
        is_empty(&*self.to).await
    }

    fn begin<'a>(
        &'a self,
        stop: &'a CancellationToken,
        progress: &'a (dyn Fn(CopyProgress) + Sync),
    ) -> Run<'a> {
        Run {
            part: self.part,
            settings: &self.settings,
            stop,
            progress,
        }
    }
}

/// The stream as which clicks of the source with this identity are copied.
#[must_use]
pub fn copy_stream(identity: &str) -> StreamId {
    StreamId(xxh3_64(identity.as_bytes()))
}
