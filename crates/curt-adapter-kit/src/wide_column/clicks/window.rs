//! Adding a window.

use curt_core::PortResult;
use curt_core::ports::{ClickWindow, StreamPartition};

use super::WideClicks;
use super::manifest::Manifest;
use super::rows::StoredOffset;
use crate::wide_column::{Decided, Doubt, Mark, pause};
use crate::{Effect, EncodedWindow};

const OP: &str = "add clicks";
/// A window that did not get in is tried again as it is: on a busy engine a short time would count none.
const FLUSH_TIMEOUT_FACTOR: u32 = 10;

impl WideClicks {
    pub(super) async fn apply_window(&self, flush: ClickWindow) -> PortResult<bool> {
        let window = EncodedWindow::encode(self.deadlines.backend, OP, flush).await?;
        self.apply_encoded_window(&window).await
    }

    pub(super) async fn apply_encoded_window(&self, window: &EncodedWindow) -> PortResult<bool> {
        let limit = self.deadlines.background * FLUSH_TIMEOUT_FACTOR;
        let apply = self.try_apply(window);
        self.deadlines
            .within(OP, limit, Effect::Unknown, apply)
            .await
    }

    async fn try_apply(&self, window: &EncodedWindow) -> PortResult<bool> {
        let _turn = self.turn.lock().await;
        let partition = window.partition;
        if self.finished_offset(OP, partition).await? != window.from {
            return Ok(false);
        }
        let manifest = Manifest::of(window);
        let runs = manifest.runs.iter().zip(&window.runs);
        let blocks = manifest.blocks.iter().zip(&window.blocks);
        let contents = runs.flat_map(|(row, run)| row.contents(run));
        let contents = contents.chain(blocks.map(|(row, block)| row.content(block)));
        self.rows.put_contents(OP, contents.collect()).await?;
        let is_moved = self.move_offset(window, &manifest).await?;
        match is_moved {
            // Entered by this call, because the next one is to see it.
            true => self.finished_offset(OP, partition).await.map(drop)?,
            false => self.delete_contents(OP, manifest.ids()).await,
        }
        Ok(is_moved)
    }

    /// Moves the position, if it still is where the window began. From then on the window counts.
    async fn move_offset(&self, window: &EncodedWindow, manifest: &Manifest) -> PortResult<bool> {
        let next = StoredOffset {
            offset: window.to,
            mark: Mark::random(),
            manifest: Some(manifest.to_text()),
        };
        let (partition, from) = (window.partition, window.from);
        let mut doubt = Doubt::default();
        let mut row = self.rows.get_offset(OP, partition).await?;
        loop {
            let from = match &row {
                None if from == 0 => None,
                Some(row) if row.offset == from && row.manifest.is_none() => Some(from),
                // Whatever came after a try of ours may have come after its success.
                _ => return doubt.or(false),
            };
            let decided = self.rows.move_offset(OP, partition, from, &next).await;
            match doubt.keep(decided)? {
                Decided::Applied => return Ok(true),
                Decided::Refused => {}
                Decided::Unknown(error) => doubt.note(error),
            }
            row = doubt.keep(self.rows.get_offset(OP, partition).await)?;
            if row.as_ref().is_some_and(|row| row.mark == next.mark) {
                return Ok(true);
            }
            pause().await;
        }
    }

    /// The offset, once everything before it is in the catalogues.
    pub(super) async fn finished_offset(
        &self,
        op: &'static str,
        partition: StreamPartition,
    ) -> PortResult<u64> {
        let Some(row) = self.rows.get_offset(op, partition).await? else {
            return Ok(0);
        };
        if let Some(text) = &row.manifest {
            let manifest = Manifest::of_text(text).ok_or_else(|| self.corrupt(op, "a manifest"))?;
            for run in &manifest.runs {
                self.enter_run(op, run).await?;
            }
            for block in &manifest.blocks {
                self.enter_block(op, block).await?;
            }
            // Left there, it is entered once more, and changes nothing.
            self.rows.finish_offset(op, partition, row.mark).await?;
        }
        Ok(row.offset)
    }
}
