//! One partition, from where the store has counted it.

mod counters;
mod write;

use std::ops::Range;
use std::time::Duration;

use curt_core::ports::{ClickWindow, StreamPartition, StreamRecord};
use curt_core::{PortError, PortResult, UnixMillis, yield_core};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::disk_space::has_room_for_windows;
use super::flush_requests::FlushServer;
use super::metrics::Counted;
use super::window_budget::WindowShare;
use super::{Pipeline, report};
use crate::aggregate::{Aggregate, Aggregated};
use crate::classify::CurrentReference;
use crate::record::{self, ClickRecord};
use counters::CountedPart;

/// Rollups after which a window ends while the disk is short of room, or is added to the counters: what is written at a
/// time stays small.
const ROLLUPS_MAX: usize = 2_000;
/// How often the room on the disk is asked for while a window grows.
const ROOM_EVERY: Duration = Duration::from_secs(1);
/// Records between two offers of the core to threads that serve requests: about a tenth of a millisecond.
const RECORDS_PER_YIELD: usize = 64;
/// From this lag on the consumer keeps the core for as long as its priority lets it.
const YIELD_LAG_MAX: Duration = Duration::from_secs(1);
/// How long what is in the stream is read before a report's flush. Enough but for a consumer that is far behind.
const CATCH_UP_MAX: Duration = Duration::from_millis(250);

pub(super) struct Consumer<'a> {
    pipeline: &'a Pipeline,
    partition: u32,
    /// Up to where the store has counted; unknown until it has been asked.
    counted: Option<u64>,
    /// Where the next poll begins.
    next: u64,
    aggregate: Aggregate,
    /// What the counters have of the window, where there are any; the aggregate has the rest then.
    counted_part: CountedPart,
    /// What the aggregate reads clicks by; a change counts for the records that are polled next.
    reference: CurrentReference,
    /// When the last click that was read was made.
    last_at: Option<UnixMillis>,
    /// When the window that has begun ends.
    window_end: Option<Instant>,
    /// A window that the store has not acknowledged. It may have been applied.
    unapplied: Option<Window>,
    share: WindowShare,
    flush_server: FlushServer,
    /// Whether the disk has little room.
    is_tight: bool,
    room_asked: Option<Instant>,
    /// Whether the last pass failed.
    has_failed: bool,
    /// Whether the window has records that cannot be decoded.
    has_dead_letters: bool,
    /// For records in JSON.
    buffer: Vec<u8>,
}

struct Window {
    flush: ClickWindow,
    counted: Counted,
}

impl Window {
    fn new(partition: StreamPartition, span: Range<u64>, aggregated: Aggregated) -> Self {
        Self {
            counted: Counted {
                clicks: aggregated.clicks,
            },
            flush: ClickWindow {
                partition,
                from: span.start,
                to: span.end,
                days: aggregated.days.into(),
                blocks: aggregated.blocks,
            },
        }
    }
}

/// What a pass found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// As many records as were asked for: probably there are more.
    Many,
    /// All that were there.
    Few,
    Nothing,
}

impl<'a> Consumer<'a> {
    pub(super) fn new(pipeline: &'a Pipeline, partition: u32, share: WindowShare) -> Self {
        let reference = pipeline.ports.reference.clone();
        Self {
            aggregate: Aggregate::new(pipeline.settings.aggregate, reference.now()),
            reference,
            pipeline,
            partition,
            counted: None,
            next: 0,
            counted_part: CountedPart::default(),
            last_at: None,
            window_end: None,
            unapplied: None,
            share,
            flush_server: pipeline.flush_requests.serve(),
            is_tight: false,
            room_asked: None,
            has_failed: false,
            has_dead_letters: false,
            buffer: Vec::new(),
        }
    }

    /// Under which name the store keeps the offset.
    fn id(&self) -> StreamPartition {
        StreamPartition {
            stream: self.pipeline.ports.source.id(),
            number: self.partition,
        }
    }

    /// Counts until `stop`, and then what is still in the stream; or until the partition is another process's business,
    /// and then only what was read.
    pub(super) async fn run(mut self, stop: &CancellationToken, revoked: &CancellationToken) {
        while !stop.is_cancelled() {
            if revoked.is_cancelled() {
                return self.hand_over().await;
            }
            let request = self.flush_server.pending();
            let passed = match request {
                Some(_) => self.flush_newest(stop).await,
                None => self.pass(self.poll_wait(), stop).await,
            };
            if let Some(request) = request {
                // Also after a failure: the report has what is stored.
                let is_whole = matches!(passed, Ok(found) if found != Found::Many);
                self.flush_server.served(request, is_whole);
            }
            match passed {
                // Here and not after a write alone: without clicks nothing is written, and what failed may have been a
                // question.
                Ok(found) => {
                    self.note_success();
                    self.let_gather(found, stop).await;
                }
                Err(error) => {
                    self.note_failure(&error);
                    self.wait_after_failure(stop).await;
                }
            }
            // A stream that is never empty must not keep others from running.
            tokio::task::yield_now().await;
            if let Some(cpu_share) = &self.pipeline.cpu_share {
                cpu_share.rest().await;
            }
        }
        self.finish(stop).await;
    }

    /// Reads what is in the stream and writes it, for a report.
    async fn flush_newest(&mut self, stop: &CancellationToken) -> PortResult<Found> {
        let deadline = Instant::now() + CATCH_UP_MAX;
        let mut found = self.pass(Duration::ZERO, stop).await?;
        while found == Found::Many && Instant::now() < deadline {
            found = self.pass(Duration::ZERO, stop).await?;
        }
        self.flush().await?;
        Ok(found)
    }

    /// Polling for every single click would cost more than counting it.
    async fn let_gather(&self, found: Found, stop: &CancellationToken) {
        if found == Found::Few {
            let pause = self.poll_wait().min(self.pipeline.settings.poll_pause);
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.flush_server.asked() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn wait_after_failure(&self, stop: &CancellationToken) {
        let retry = tokio::time::sleep(self.pipeline.settings.retry);
        tokio::pin!(retry);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = &mut retry => return,
                // Reports do not wait for a store that just failed.
                () = self.flush_server.asked() => {
                    self.flush_server.pending().into_iter().for_each(|request| self.flush_server.served(request, false));
                }
            }
        }
    }

    /// Writes what was read. Where its next consumer was quicker, the store refuses it, and nothing is counted twice.
    async fn hand_over(mut self) {
        if let Err(error) = self.flush().await {
            report(&error);
        }
    }

    /// Counts what is still in the stream. What is left after a failure or too long a time is counted at the next start.
    async fn finish(mut self, stop: &CancellationToken) {
        let deadline = Instant::now() + self.pipeline.settings.drain_max;
        loop {
            let passed = self.pass(Duration::ZERO, stop).await;
            let is_drained = matches!(passed, Ok(Found::Nothing)) || Instant::now() >= deadline;
            let ended = match passed {
                Ok(_) if is_drained => self.flush().await,
                Ok(_) => continue,
                Err(error) => Err(error),
            };
            if let Err(error) = ended {
                report(&error);
            }
            return;
        }
    }

    fn note_success(&mut self) {
        if std::mem::take(&mut self.has_failed) {
            let pipeline = self.pipeline;
            let now = pipeline.ports.clock.now();
            pipeline.state.goes_on(self.partition, now);
        }
    }

    fn note_failure(&mut self, error: &PortError) {
        self.has_failed = true;
        let pipeline = self.pipeline;
        let now = pipeline.ports.clock.now();
        if pipeline.state.failed(self.partition, error, now) {
            report(error);
        }
    }

    /// Not past the end of the window, which is written also when nothing comes.
    fn poll_wait(&self) -> Duration {
        let left = |end: Instant| end.saturating_duration_since(Instant::now());
        let longest = self.pipeline.settings.poll_wait;
        self.window_end
            .map_or(longest, |end| left(end).min(longest))
    }

    async fn pass(&mut self, wait: Duration, stop: &CancellationToken) -> PortResult<Found> {
        self.apply_rest().await?;
        self.ask_offset().await?;
        let found = self.take_in(wait, stop).await?;
        self.add_due_counts().await?;
        self.share
            .hold(self.aggregate.memory_bytes() + self.counted_part.bytes);
        self.ask_room().await?;
        if self.share.is_exceeded() || self.window_end.is_some_and(|end| end <= Instant::now()) {
            self.flush().await?;
        }
        Ok(found)
    }

    /// Finds out whether windows must stay small: a large one that is ready could not be made smaller any more.
    async fn ask_room(&mut self) -> PortResult<()> {
        let is_known = self
            .room_asked
            .is_some_and(|asked| asked.elapsed() < ROOM_EVERY);
        if is_known || self.window_end.is_none() {
            return Ok(());
        }
        let pipeline = self.pipeline;
        let free_bytes = pipeline.ports.store.free_bytes().await?;
        self.room_asked = Some(Instant::now());
        self.is_tight = !has_room_for_windows(free_bytes, &pipeline.settings);
        Ok(())
    }

    /// Asks the store where to go on, at the start and after somebody else has moved the offset. What the counters have
    /// behind it is written first.
    async fn ask_offset(&mut self) -> PortResult<u64> {
        loop {
            if let Some(counted) = self.counted {
                return Ok(counted);
            }
            let offset = self.pipeline.ports.store.offset(self.id()).await?;
            self.unapplied = self.find_window(offset).await?;
            let next = self.unapplied.as_ref().map(|window| window.flush.to);
            self.counted = Some(offset);
            self.next = next.unwrap_or(offset);
            self.counted_part = CountedPart::none(self.next);
            // A crash may have come between apply and commit.
            self.commit(offset).await;
            self.apply_rest().await?;
        }
    }

    async fn take_in(&mut self, wait: Duration, stop: &CancellationToken) -> PortResult<Found> {
        let (source, limit) = (&self.pipeline.ports.source, self.pipeline.settings.poll_max);
        let records = tokio::select! {
            records = source.poll(self.partition, self.next, limit, wait) => records?,
            // The last passes do not wait, and must see what is there; so must those for a report.
            () = stop.cancelled(), if !wait.is_zero() => Vec::new(),
            () = self.flush_server.asked(), if !wait.is_zero() => Vec::new(),
        };
        // After the wait: what is in force when a click is read counts.
        if let Some(reference) = self.reference.take_changed() {
            self.aggregate.use_reference(reference);
        }
        let lag = self.pipeline.state.lag(self.pipeline.ports.clock.now());
        for (place, record) in records.iter().enumerate() {
            if place % RECORDS_PER_YIELD == 0 && lag < YIELD_LAG_MAX {
                yield_core();
            }
            self.take_in_one(record).await?;
            if self.aggregate.rollups() < ROLLUPS_MAX {
                continue;
            }
            match self.is_tight {
                true => self.flush().await?,
                false => self.add_counts().await?,
            }
            // Refused: the records that follow are read again, from where the store says.
            if self.counted.is_none() {
                break;
            }
        }
        let found = match records.len() {
            0 => Found::Nothing,
            count if count < limit => Found::Few,
            _ => Found::Many,
        };
        let read_until = self.last_at.filter(|_| found == Found::Many);
        let now = self.pipeline.ports.clock.now();
        self.pipeline
            .state
            .note_read(self.partition, read_until, now);
        Ok(found)
    }

    async fn take_in_one(&mut self, record: &StreamRecord) -> PortResult<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        match record::decode_any(&record.bytes, &mut buffer) {
            Ok(click) => self.add(&click).await?,
            Err(error) => {
                let dead_letters = &self.pipeline.ports.dead_letters;
                let reason = error.reason();
                dead_letters.put(self.partition, record.offset, reason, &record.bytes);
                self.has_dead_letters = true;
            }
        }
        self.buffer = buffer;
        self.next = record.offset.saturating_add(1);
        self.share.add_read(record.stored_bytes);
        let window = self.pipeline.settings.window;
        self.window_end
            .get_or_insert_with(|| Instant::now() + window);
        Ok(())
    }

    async fn add(&mut self, click: &ClickRecord<'_>) -> PortResult<()> {
        let ports = &self.pipeline.ports;
        // At most two rounds: the salt of the click's day is all that can be missing.
        while let Err(wanted) = self.aggregate.add(click, ports.clock.now()) {
            let salt = ports.store.salt(wanted.0, rand::random()).await?;
            self.aggregate.salts().give(wanted.0, &salt);
        }
        self.last_at = Some(click.at);
        Ok(())
    }
}
