use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::link::KeyOrigin;
use tokio_util::sync::CancellationToken;

use super::{Line, Opened, Taking};
use crate::account::KeyAccounts;
use crate::buffer::Buffer;
use crate::error::KeyError;
use crate::lease::Leases;
use crate::metrics::KeyMetrics;
use crate::mint::{FileFill, Progress};
use crate::pace::{NextPass, Nudges};
use crate::preload::{Preload, Series};
use crate::settings::KeySettings;
use crate::supply::KeyPorts;

/// `file`: keygen writes files, preload claims their blocks.
struct FileLine {
    ports: KeyPorts,
    buffer: Arc<Buffer>,
    series: Arc<Series>,
    keygen: FileFill,
}

pub(super) fn open(
    settings: &KeySettings,
    ports: KeyPorts,
    metrics: &KeyMetrics,
    nudges: &Arc<Nudges>,
) -> Result<Opened, KeyError> {
    let files = ports.files.clone().ok_or(KeyError::Missing {
        strategy: settings.strategy.name(),
        needs: "a place for key files",
    })?;
    let cursor = || Arc::clone(&ports.cursor);
    let series = Arc::new(Series::new(
        Arc::clone(&files),
        cursor(),
        settings.alphabet,
        settings.length,
    ));
    let preload = Preload {
        files: Arc::clone(&files),
        cursor: cursor(),
        series: Arc::clone(&series),
        block_keys: settings.file.block_keys,
        unwanted: settings.unwanted.clone(),
        left_low: FileFill::left_low(&settings.file),
        was_low: AtomicBool::new(false),
        metrics: metrics.clone(),
        nudges: Arc::clone(nudges),
    };
    // Never more than a block: a process that dies takes at most that with it.
    let buffer = Arc::new(Buffer::new(
        Box::new(preload),
        settings.file.block_keys,
        settings.file.refill_under,
        settings.dry_wait,
    ));
    let keygen = FileFill::new(
        files,
        cursor(),
        Arc::clone(&series),
        settings.file,
        Arc::clone(&buffer),
        Leases::new(Arc::clone(&ports.locks), settings.lock_ttl),
    );
    let taking = Taking::Ring {
        buffer: Arc::clone(&buffer),
        origin: KeyOrigin::File,
    };
    let line = FileLine {
        ports,
        buffer,
        series,
        keygen,
    };
    Ok((taking, Box::new(line)))
}

#[async_trait]
impl Line for FileLine {
    async fn generate(&self, stop: &CancellationToken) -> NextPass {
        self.keygen.pass(stop).await;
        NextPass::AtTick
    }

    async fn stock(
        &self,
        wanted: u64,
        stop: &CancellationToken,
        progress: &Progress<'_>,
    ) -> Option<Result<u64, KeyError>> {
        Some(self.keygen.stock(wanted, stop, progress).await)
    }

    async fn generating_ended(&self) {
        self.keygen.release_locks().await;
    }

    /// Leaked: blocks that a process held when it ended, damaged blocks, and reserved words.
    async fn accounts(&self) -> PortResult<KeyAccounts> {
        let register = self.series.position_register();
        let position = self.ports.cursor.get(register).await?;
        self.series.refresh().await?;
        let links = self.ports.links()?.counts().await?;
        let accounts = KeyAccounts {
            minted: self.series.keys(),
            free: self.series.end().saturating_sub(position),
            buffered: self.buffer.len() as u64,
            used: links.created_from(KeyOrigin::File),
            ..KeyAccounts::default()
        };
        Ok(accounts.with_difference())
    }

    async fn close(&self) -> PortResult<()> {
        self.keygen.release_locks().await;
        Ok(())
    }
}
