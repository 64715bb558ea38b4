//! Writing a window.

use curt_core::{Day, ErrorKind, PortError, PortResult, names};
use tokio::time::Instant;

use super::super::disk_space::{WriteScope, choose_scope};
use super::super::report;
use super::super::retention::CLICK_BATCH;
use super::counters::CountedPart;
use super::{Consumer, Window};

impl Consumer<'_> {
    /// Ends the window and writes it.
    pub(super) async fn flush(&mut self) -> PortResult<()> {
        self.apply_rest().await?;
        let from = self.ask_offset().await?;
        self.window_end = None;
        if self.next == from {
            return Ok(());
        }
        self.share.hold(self.aggregate.memory_bytes());
        let aggregated = self.aggregated(from).await?;
        self.unapplied = Some(Window::new(self.id(), from..self.next, aggregated));
        let today = Day::of(self.pipeline.ports.clock.now());
        self.aggregate.salts().forget(today.minus(1));
        self.apply_rest().await
    }

    /// Writes the window that waits for it, if one does and there is room for it.
    pub(super) async fn apply_rest(&mut self) -> PortResult<()> {
        self.make_fit().await?;
        if self.unapplied.is_some() {
            self.sync_dead_letters().await?;
        }
        let Some(window) = &self.unapplied else {
            return Ok(());
        };
        let (from, to) = (window.flush.from, window.flush.to);
        let clicks = window.flush.clicks();
        let started = Instant::now();
        let applied = self.apply(window).await;
        let pipeline = self.pipeline;
        pipeline.metrics.tried(&applied, started.elapsed());
        if applied? {
            pipeline.metrics.counted(&window.counted);
            self.counted = Some(to);
            self.counted_part = CountedPart::none(to);
            self.unapplied = None;
            self.share.release();
            self.forget_window(from).await;
            self.commit(to).await;
            self.trim(clicks).await;
            self.compact().await;
        } else {
            self.give_way();
        }
        Ok(())
    }

    /// Leaves the single clicks out of the window that waits, or refuses it, when the disk has too little room.
    async fn make_fit(&mut self) -> PortResult<()> {
        let Some(window) = &mut self.unapplied else {
            return Ok(());
        };
        let pipeline = self.pipeline;
        let (store, reserve) = (&pipeline.ports.store, pipeline.settings.disk_reserve);
        let mut scope = choose_scope(&window.flush, store.free_bytes().await?, reserve);
        if scope != WriteScope::CountsAndClicks {
            store.checkpoint().await?;
            scope = choose_scope(&window.flush, store.free_bytes().await?, reserve);
        }
        self.is_tight |= scope != WriteScope::CountsAndClicks;
        match scope {
            WriteScope::CountsAndClicks => {
                pipeline.state.keeps();
                Ok(())
            }
            WriteScope::CountsOnly => {
                let skipped = window.flush.clicks();
                window.flush.blocks.clear();
                if skipped > 0 {
                    pipeline.metrics.skipped(skipped);
                    pipeline.state.skips(pipeline.ports.clock.now());
                }
                Ok(())
            }
            WriteScope::Nothing => {
                let detail = format!(
                    "the disk of the clicks database has less than clicks.disk_reserve ({reserve} bytes) to spare: \
                     free space; clicks wait in the spool, links are made and followed"
                );
                let kind = ErrorKind::Throttled;
                Err(PortError::new(kind, "disk", "add clicks", detail))
            }
        }
    }

    /// Removes the oldest single clicks beyond what they may take, after so many came.
    async fn trim(&self, came: usize) {
        let Some(bytes_max) = self.pipeline.settings.clicks_bytes_max else {
            return;
        };
        let limit = came.saturating_mul(2).max(CLICK_BATCH);
        match self
            .pipeline
            .ports
            .store
            .trim_clicks(bytes_max, limit)
            .await
        {
            Ok(trimmed) => self.pipeline.metrics.trimmed(trimmed),
            Err(error) => report(&error),
        }
    }

    /// Small windows make many small pieces; what fails here is done after the next one.
    async fn compact(&self) {
        if let Err(error) = self.pipeline.ports.store.compact().await {
            report(&error);
        }
    }

    /// Says whether the store has the window now.
    async fn apply(&self, window: &Window) -> PortResult<bool> {
        let store = &self.pipeline.ports.store;
        if store.apply(window.flush.clone()).await? {
            return Ok(true);
        }
        // An earlier try whose answer was lost may have been applied.
        Ok(store.offset(self.id()).await? == window.flush.to)
    }

    /// Another consumer counts this partition: what was read here is its business, or is read again.
    fn give_way(&mut self) {
        tracing::warn!(
            event = names::event::CLICK_FLUSH_REFUSED,
            partition = self.partition,
            "another process counts these clicks too"
        );
        self.start_over();
    }

    /// Drops the window; the next pass asks the store where to go on.
    pub(super) fn start_over(&mut self) {
        self.unapplied = None;
        self.aggregate.clear();
        self.share.release();
        self.window_end = None;
        self.counted = None;
    }

    /// Has the dead letters kept that were put: nobody comes back for them once offsets move on.
    pub(super) async fn sync_dead_letters(&mut self) -> PortResult<()> {
        if self.has_dead_letters {
            self.pipeline.ports.dead_letters.sync().await?;
            self.has_dead_letters = false;
        }
        Ok(())
    }

    /// The stream keeps what it is not told about, so a failure costs only room until the next flush.
    pub(super) async fn commit(&self, position: u64) {
        let committed = self.pipeline.ports.source.commit(self.partition, position);
        if let Err(error) = committed.await {
            report(&error);
        }
    }
}
