//! preload: key files to buffer, a block at a time.
//!
//! A cursor holds the position of the next key that was not given away. A block is read, then claimed by moving the
//! cursor past it, and only then served (K-4): two preloaders that read the same block cannot both claim it, and a
//! crash skips the rest of a block and never repeats it. A damaged block is claimed and thrown away.

mod series;

pub(crate) use series::{Series, Span};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use curt_core::link::KeyOrigin;
use curt_core::names::event;
use curt_core::ports::KeyFile;
use curt_core::reserved::is_reserved;
use curt_core::{ErrorKind, Key, KeyRefusal, PortError, PortResult, UnwantedWords};

use crate::key_counts::KeyCounts;
use crate::metrics::KeyMetrics;
use crate::pace::Nudges;
use crate::ports::KeyPorts;
use crate::settings::{BufferSettings, FileSettings};
use crate::source::KeySource;

/// Blocks that one draw passes over, because they are damaged or another preloader was quicker.
const BLOCKS_TRIED_MAX: u32 = 64;

/// `file`: blocks of key files, which keygen writes.
pub(crate) struct Preload {
    pub(crate) ports: KeyPorts,
    pub(crate) files: Arc<dyn KeyFile>,
    pub(crate) series: Arc<Series>,
    pub(crate) settings: FileSettings,
    pub(crate) unwanted: UnwantedWords,
    /// With fewer keys left in the files, keygen is woken.
    pub(crate) left_low: u64,
    pub(crate) was_low: AtomicBool,
    pub(crate) metrics: KeyMetrics,
    pub(crate) nudges: Arc<Nudges>,
}

#[async_trait]
impl KeySource for Preload {
    fn origin(&self) -> KeyOrigin {
        KeyOrigin::File
    }

    /// Never more than a block: a process that dies takes at most that with it.
    fn buffer(&self) -> Option<BufferSettings> {
        Some(BufferSettings {
            capacity: self.settings.block_keys,
            low: self.settings.refill_under,
        })
    }

    async fn draw(&self, room: usize) -> PortResult<Vec<Key>> {
        for _ in 0..BLOCKS_TRIED_MAX {
            let position = self.series.position().await?;
            let Some(span) = self.series.at(position).await? else {
                self.nudges.keygen.notify_one();
                return Ok(Vec::new());
            };
            let count = (span.end() - position).min(self.settings.block_keys.min(room) as u64);
            let read = self.read(&span, position, count).await?;
            // Read first, claimed second, served last (K-4): a claim that is refused costs a read, and a crash after it
            // a block.
            if !self.series.claim(position, position + count).await? {
                continue;
            }
            self.look_at_rest(self.series.end() - position - count);
            match read {
                Block::Keys(keys) => return Ok(keys),
                Block::Damaged(why) => self.skipped(&span, position, count, &why),
            }
        }
        Ok(Vec::new())
    }

    /// Leaked: blocks that a process held when it ended, damaged blocks, and reserved words.
    async fn count_keys(&self, buffered: u64) -> PortResult<KeyCounts> {
        let position = self.series.position().await?;
        self.series.refresh().await?;
        let links = self.ports.links()?.totals.counts().await?;
        let counts = KeyCounts {
            minted: self.series.keys(),
            free: self.series.end().saturating_sub(position),
            buffered,
            used: links.created_from(KeyOrigin::File),
            ..KeyCounts::default()
        };
        Ok(counts.with_difference())
    }
}

enum Block {
    Keys(Vec<Key>),
    Damaged(PortError),
}

impl Preload {
    async fn read(&self, span: &Span, position: u64, count: u64) -> PortResult<Block> {
        let wanted = usize::try_from(count).unwrap_or(usize::MAX);
        match self
            .files
            .read(&span.name, position - span.first, wanted)
            .await
        {
            Ok(keys) if keys.len() == wanted => Ok(Block::Keys(
                keys.into_iter()
                    .filter(|key| self.allows(key.as_str()))
                    .collect(),
            )),
            Ok(_) => Ok(Block::Damaged(PortError::new(
                ErrorKind::Corrupt,
                "key file",
                "read a block",
                "the file is shorter than it says",
            ))),
            Err(error) if error.kind == ErrorKind::Corrupt => Ok(Block::Damaged(error)),
            Err(error) => Err(error),
        }
    }

    fn allows(&self, key: &str) -> bool {
        let allowed = self.unwanted.allow(key);
        if !allowed {
            let why = match is_reserved(key) {
                true => KeyRefusal::Reserved,
                false => KeyRefusal::Unwanted,
            };
            self.metrics.refused(why).inc();
        }
        allowed
    }

    /// Calls for the next file in time, and for help when none came: half of what calls for one is left.
    fn look_at_rest(&self, left: u64) {
        if left < self.left_low {
            self.nudges.keygen.notify_one();
        }
        let is_low = left < self.left_low / 2;
        if is_low && !self.was_low.load(Ordering::Relaxed) {
            tracing::warn!(
                event = event::KEY_FILES_LOW,
                left,
                "key files running out, check keygen"
            );
        }
        self.was_low.store(is_low, Ordering::Relaxed);
    }

    fn skipped(&self, span: &Span, position: u64, keys: u64, why: &PortError) {
        self.metrics.corrupt_blocks.inc();
        tracing::error!(
            event = event::KEY_BLOCK_SKIPPED,
            file = %span.name,
            position,
            keys,
            "{why}"
        );
    }
}
