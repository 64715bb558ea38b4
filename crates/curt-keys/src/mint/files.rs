use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::names::event;
use curt_core::ports::{KeyFile, KeyFileLayout};
use tokio_util::sync::CancellationToken;

use crate::error::KeySupplyError;
use crate::lease::{HeldLeases, LeaseName};
use crate::pace::{NextPass, Nudges, report};
use crate::preload::Series;
use crate::settings::FileSettings;
use crate::source::{KeyProducer, ReportProgress};

/// A file's progress is logged this many times.
const PROGRESS_LINES: u64 = 10;

/// Writes the next key file in time: when less than a fifth of a file is left.
pub(crate) struct FileFill {
    pub(crate) files: Arc<dyn KeyFile>,
    pub(crate) series: Arc<Series>,
    pub(crate) settings: FileSettings,
    pub(crate) nudges: Arc<Nudges>,
    pub(crate) leases: HeldLeases,
}

impl FileFill {
    /// Keys below which the next file is due.
    pub(crate) fn left_low(settings: &FileSettings) -> u64 {
        settings.file_keys.div_ceil(5)
    }

    async fn owns(&self) -> bool {
        self.leases.keep(&LeaseName::KeyFiles).await
    }

    async fn fill(&self, stop: &CancellationToken) -> PortResult<()> {
        let waiting = self.waiting().await?;
        if waiting.end - waiting.start < Self::left_low(&self.settings) {
            self.write(waiting.end, stop, &|_| ()).await?;
        }
        Ok(())
    }

    /// The indices of the keys that are written and not given away.
    async fn waiting(&self) -> PortResult<Range<u64>> {
        let position = self.series.position().await?;
        self.series.refresh().await?;
        // Keys that were given away are not written again, even if their files are gone.
        Ok(position..self.series.end().max(position))
    }

    /// Writes files until `wanted` keys wait in them. Returns how many do: fewer when told to stop.
    async fn write_until(
        &self,
        wanted: u64,
        stop: &CancellationToken,
        progress: &ReportProgress<'_>,
    ) -> Result<u64, KeySupplyError> {
        loop {
            if !self.owns().await {
                return Err(KeySupplyError::Busy("key files"));
            }
            let Range { start, end } = self.waiting().await?;
            progress(end - start);
            if end - start >= wanted || stop.is_cancelled() {
                return Ok(end - start);
            }
            let written = self
                .write(end, stop, &|written| progress(end - start + written))
                .await?;
            if written == 0 && !stop.is_cancelled() {
                return Err(KeySupplyError::NoMoreKeys);
            }
        }
    }

    /// Writes the file that starts at index `first` and returns how many keys are in it. Told to stop, or when the
    /// lease is lost, it leaves no trace.
    async fn write(
        &self,
        first: u64,
        stop: &CancellationToken,
        progress: &ReportProgress<'_>,
    ) -> PortResult<u64> {
        let name = self.series.file_name(first);
        let layout = KeyFileLayout {
            width: self.series.width(),
            block_keys: self.settings.block_keys,
        };
        let mut writer = self.files.create(&name, layout).await?;
        let (total, block) = (self.settings.file_keys, self.settings.block_keys as u64);
        let mut written = 0;
        while written < total {
            if stop.is_cancelled() || !self.owns().await {
                return Ok(0);
            }
            let keys = self
                .series
                .keys_at(first + written, block.min(total - written))
                .await?;
            if keys.is_empty() {
                tracing::error!(
                    event = event::KEY_SUPPLY_DRIED,
                    "key space exhausted, use longer keys"
                );
                break;
            }
            writer.append(&keys).await?;
            let before = written;
            written += keys.len() as u64;
            progress(written);
            if before * PROGRESS_LINES / total != written * PROGRESS_LINES / total {
                let percent = written * 100 / total;
                tracing::info!(event = event::KEY_FILE_GREW, file = %name, percent, "key file grew");
            }
            tokio::task::yield_now().await;
        }
        if written > 0 {
            let stat = writer.publish().await?;
            let keys = stat.keys;
            tracing::info!(event = event::KEY_FILE_PUBLISHED, file = %name, keys, "key file published");
            self.series.refresh().await?;
            self.nudges.buffer.notify_one();
        }
        Ok(written)
    }
}

#[async_trait]
impl KeyProducer for FileFill {
    async fn generate(&self, stop: &CancellationToken) -> NextPass {
        if self.owns().await
            && let Err(error) = self.fill(stop).await
        {
            report(&error);
        }
        NextPass::AtTick
    }

    async fn release_leases(&self) {
        self.leases.release_all().await;
    }

    async fn fill_key_files(
        &self,
        wanted: u64,
        stop: &CancellationToken,
        progress: &ReportProgress<'_>,
    ) -> Option<Result<u64, KeySupplyError>> {
        Some(self.write_until(wanted, stop, progress).await)
    }
}
