//! A window that is kept in [`ClickCounters`](curt_core::ports::ClickCounters) until it is flushed.
//!
//! What goes wrong there has one cure: the window that is here is dropped, and the consumer starts over. It asks the store
//! for the offset and the counters for a window that begins there, writes it if there is one, and goes on behind it.

use curt_core::ports::{CounterAddition, StreamPartition};
use curt_core::{ErrorKind, PortError, PortResult};
use tokio::time::Instant;

use super::{Consumer, Window};
use crate::aggregate::Aggregated;

/// The part of a window that the counters have.
#[derive(Debug, Default)]
pub(super) struct CountedPart {
    /// Up to where it goes.
    to: u64,
    pub(super) bytes: usize,
    /// When it was added to.
    at: Option<Instant>,
}

impl CountedPart {
    /// Nothing yet of a window that begins there.
    pub(super) fn none(from: u64) -> Self {
        Self {
            to: from,
            ..Self::default()
        }
    }
}

impl Consumer<'_> {
    /// Adds what is aggregated to the counters, where there are any and it is time.
    pub(super) async fn add_due_counts(&mut self) -> PortResult<()> {
        let every = self.pipeline.settings.counters_every;
        let is_new = |at: Instant| at.elapsed() < every;
        if self.pipeline.ports.counters.is_none() || self.counted_part.at.is_some_and(is_new) {
            return Ok(());
        }
        self.add_counts().await
    }

    /// Adds what is aggregated to the counters, where there are any.
    pub(super) async fn add_counts(&mut self) -> PortResult<()> {
        let Some(counters) = &self.pipeline.ports.counters else {
            return Ok(());
        };
        let from = self.ask_offset().await?;
        if self.next == self.counted_part.to {
            return Ok(());
        }
        // The window goes past them.
        self.sync_dead_letters().await?;
        let partition = self.id();
        let aggregated = self.aggregate.take(partition, from);
        let addition = CounterAddition {
            from,
            seen: self.counted_part.to,
            next: self.next,
            counts: aggregated.counts(),
            piece: aggregated.piece(),
        };
        match counters.add(partition, addition).await {
            Ok(Some(bytes)) => {
                self.counted_part = CountedPart {
                    to: self.next,
                    bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
                    at: Some(Instant::now()),
                };
                Ok(())
            }
            Ok(None) => Err(self.lose_window()),
            Err(error) => {
                self.start_over();
                Err(error)
            }
        }
    }

    /// The whole window, which began at `from`.
    pub(super) async fn aggregated(&mut self, from: u64) -> PortResult<Aggregated> {
        let partition = self.id();
        if self.pipeline.ports.counters.is_none() {
            return Ok(self.aggregate.take(partition, from));
        }
        self.add_counts().await?;
        match self.read_counters(partition, from).await {
            Ok(Some((to, aggregated))) if to == self.next => Ok(aggregated),
            Ok(_) => Err(self.lose_window()),
            Err(error) => {
                self.start_over();
                Err(error)
            }
        }
    }

    /// The window that a consumer before this one has left in the counters behind the store's offset.
    pub(super) async fn find_window(&self, offset: u64) -> PortResult<Option<Window>> {
        let partition = self.id();
        let found = self.read_counters(partition, offset).await?;
        Ok(found.map(|(to, aggregated)| Window::new(partition, offset..to, aggregated)))
    }

    /// What the counters have from this offset on, and up to where. A window that began elsewhere is of no use any more.
    async fn read_counters(
        &self,
        partition: StreamPartition,
        from: u64,
    ) -> PortResult<Option<(u64, Aggregated)>> {
        let Some(counters) = &self.pipeline.ports.counters else {
            return Ok(None);
        };
        let Some(window) = counters.window(partition).await? else {
            return Ok(None);
        };
        match Aggregated::from_counters(partition, &window) {
            Ok(aggregated) if window.from == from => Ok(Some((window.to, aggregated))),
            // Another version's is read again, too.
            Ok(_) | Err(_) => {
                counters.forget(partition, window.from).await?;
                Ok(None)
            }
        }
    }

    /// Drops a window that the store has. One that stays is found to be of no use later.
    pub(super) async fn forget_window(&self, from: u64) {
        if let Some(counters) = &self.pipeline.ports.counters
            && let Err(error) = counters.forget(self.id(), from).await
        {
            super::report(&error);
        }
    }

    fn lose_window(&mut self) -> PortError {
        self.start_over();
        let detail =
            "the window of clicks is not what was added: they are read again from the stream";
        PortError::new(ErrorKind::Unavailable, "counters", "add clicks", detail)
    }
}
