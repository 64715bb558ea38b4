use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use curt_core::PortResult;
use curt_core::names::event;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{KeySupply, lock};
use crate::heartbeat::Instance;
use crate::key_counts::{BalanceWatch, KeyCounts};
use crate::pace::{NextPass, next_pass, report};
use crate::status::{KeyStatus, imbalance_text};

/// How often the metric of K-2 is brought up to date: in ticks, and at most.
const ACCOUNTS_EVERY_TICKS: u32 = 5;
const ACCOUNTS_EVERY: Duration = Duration::from_secs(5);

/// What this process has found out about K-2.
#[derive(Default)]
pub(super) struct BalanceReport {
    watch: Mutex<BalanceWatch>,
    /// Keys that are surely found twice.
    surplus: AtomicU64,
}

impl KeySupply {
    /// Sends a heartbeat once a tick, with what this process holds, so that others can count all keys, and shows them
    /// here, until `stop`.
    pub async fn run_heartbeat(self: Arc<Self>, stop: CancellationToken) {
        let Some(heartbeat) = &self.heartbeat else {
            return;
        };
        let never = Notify::new();
        let mut answered = Vec::new();
        let mut shown_at: Option<Instant> = None;
        let every = (self.tick * ACCOUNTS_EVERY_TICKS).min(ACCOUNTS_EVERY);
        while !stop.is_cancelled() {
            heartbeat.beat(self.holdings(), &self.metrics).await;
            if shown_at.is_none_or(|at| at.elapsed() >= every) {
                shown_at = Some(Instant::now());
                let audits = self.show_key_counts().await;
                let buffer = || self.buffered_keys();
                heartbeat
                    .answer_audits(&audits, &mut answered, buffer)
                    .await;
            }
            next_pass(&never, NextPass::AtTick, self.tick, &stop).await;
        }
        heartbeat.answer_audits(&[], &mut answered, Vec::new).await;
    }

    /// Brings the metrics up to date, and returns which audits ask for the buffers.
    async fn show_key_counts(&self) -> Vec<Box<str>> {
        let Some(mut status) = self.status().await else {
            match self.source.count_keys(self.holdings().buffered).await {
                Ok(counts) => self.metrics.show(&counts),
                Err(error) => report(&error),
            }
            return Vec::new();
        };
        status.failures.iter().for_each(report);
        self.metrics.show_shards(&status);
        if let Some(counts) = status.key_counts() {
            self.metrics.show(&counts);
        }
        let audits = std::mem::take(&mut status.audits);
        let surplus = lock(&self.balance.watch).add(status);
        if let Some(surplus) = surplus {
            self.note_surplus(surplus);
        }
        audits
    }

    /// The source shard by shard, with what this process holds now.
    async fn status(&self) -> Option<KeyStatus> {
        let mut status = self.source.status().await?;
        if let (Some(instances), Some(heartbeat)) = (&mut status.instances, &self.heartbeat) {
            heartbeat.correct(instances, self.holdings(), &self.metrics);
        }
        Some(status)
    }

    fn note_surplus(&self, keys: u64) {
        let before = self.balance.surplus.swap(keys, Ordering::Relaxed);
        self.metrics.show_surplus(keys);
        if keys > 0 && before == 0 {
            let advice = imbalance_text(keys);
            tracing::warn!(
                event = event::KEYS_UNBALANCED,
                keys,
                advice,
                "keys found twice"
            );
        } else if keys == 0 && before > 0 {
            tracing::info!(event = event::KEYS_BALANCED, "keys balance again");
        }
    }

    /// What is wrong with the counts of K-2, as this process has seen them over several looks: more keys are found
    /// than were made.
    #[must_use]
    pub fn imbalance(&self) -> Option<String> {
        match self.balance.surplus.load(Ordering::Relaxed) {
            0 => None,
            keys => Some(imbalance_text(keys)),
        }
    }

    /// The processes that send heartbeats, this one included; none where the supply has no heartbeats, or they cannot be
    /// read.
    pub async fn instances(&self) -> Vec<Instance> {
        let status = self.status().await;
        status
            .and_then(|status| status.instances)
            .unwrap_or_default()
    }

    /// K-2: where every key is. See [`KeyCounts`] for what can be off for a moment.
    pub async fn count_keys(&self) -> PortResult<KeyCounts> {
        match self.status().await {
            Some(status) => status.into_key_counts(),
            None => self.source.count_keys(self.holdings().buffered).await,
        }
    }
}
