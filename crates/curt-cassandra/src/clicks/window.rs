//! Adding a window.

use curt_adapter_kit::{Effect, EncodedWindow};
use curt_core::PortResult;
use curt_core::ports::{ClickWindow, StreamPartition};
use scylla::DeserializeRow;

use super::CassandraClicks;
use super::manifest::Manifest;
use crate::failure::{BACKEND, corrupt};
use crate::pause::pause;
use crate::statement::{Cql, Decided, Doubt};

const OP: &str = "add clicks";
/// A window that did not get in is tried again as it is: on a busy engine a short time would count none.
pub(super) const FLUSH_TIMEOUT_FACTOR: u32 = 10;

const GET: Cql = Cql::read(
    "SELECT next_offset, mark, manifest FROM KEYSPACE.click_offsets \
     WHERE namespace = ? AND stream = ? AND partition = ?",
)
.serial();
const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.click_offsets (namespace, stream, partition, next_offset, mark, manifest) \
     VALUES (?, ?, ?, ?, ?, ?) IF NOT EXISTS",
);
const MOVE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.click_offsets SET next_offset = ?, mark = ?, manifest = ? \
     WHERE namespace = ? AND stream = ? AND partition = ? IF next_offset = ? AND manifest = null",
);
const FINISH: Cql = Cql::conditional(
    "UPDATE KEYSPACE.click_offsets SET manifest = null \
     WHERE namespace = ? AND stream = ? AND partition = ? IF mark = ?",
);

#[derive(DeserializeRow)]
struct OffsetRow {
    next_offset: i64,
    mark: Vec<u8>,
    manifest: Option<String>,
}

impl CassandraClicks {
    pub(super) async fn apply_window(&self, flush: ClickWindow) -> PortResult<bool> {
        let window = EncodedWindow::encode(BACKEND, OP, flush).await?;
        let limit = self.engine.settings.background_timeout * FLUSH_TIMEOUT_FACTOR;
        let apply = self.try_apply(&window);
        self.engine.within(OP, limit, Effect::Unknown, apply).await
    }

    pub(super) async fn try_apply(&self, window: &EncodedWindow) -> PortResult<bool> {
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
        self.put_contents(OP, contents.collect()).await?;
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
        let (stream, number) = columns(window.partition);
        let (from, to) = (window.from.cast_signed(), window.to.cast_signed());
        let (namespace, text) = (&*self.namespace, manifest.to_text());
        let mark: [u8; 16] = rand::random();
        let mut doubt = Doubt::default();
        let mut row = self.find_offset(OP, window.partition).await?;
        loop {
            let decided = match &row {
                None if from == 0 => {
                    let values = (namespace, stream, number, to, &mark[..], &text);
                    self.engine.decide(OP, INSERT, values).await
                }
                Some(row) if row.next_offset == from && row.manifest.is_none() => {
                    let values = (to, &mark[..], &text, namespace, stream, number, from);
                    self.engine.decide(OP, MOVE, values).await
                }
                // Whatever came after a try of ours may have come after its success.
                _ => return doubt.or(false),
            };
            match doubt.keep(decided)? {
                Decided::Applied => return Ok(true),
                Decided::Refused => {}
                Decided::Unknown(error) => doubt.note(error),
            }
            row = doubt.keep(self.find_offset(OP, window.partition).await)?;
            if row.as_ref().is_some_and(|row| row.mark == mark) {
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
        let Some(row) = self.find_offset(op, partition).await? else {
            return Ok(0);
        };
        if let Some(text) = &row.manifest {
            let manifest = Manifest::of_text(text).ok_or_else(|| corrupt(op, "a manifest"))?;
            for run in &manifest.runs {
                self.enter_run(op, run).await?;
            }
            for block in &manifest.blocks {
                self.enter_block(op, block).await?;
            }
            let (stream, number) = columns(partition);
            let values = (&*self.namespace, stream, number, &row.mark);
            // Left there, it is entered once more, and changes nothing.
            self.engine.decide(op, FINISH, values).await?;
        }
        Ok(row.next_offset.cast_unsigned())
    }

    async fn find_offset(
        &self,
        op: &'static str,
        partition: StreamPartition,
    ) -> PortResult<Option<OffsetRow>> {
        let (stream, number) = columns(partition);
        let values = (&*self.namespace, stream, number);
        self.engine.first(op, GET, values).await
    }
}

fn columns(StreamPartition { stream, number }: StreamPartition) -> (i64, i64) {
    (stream.0.cast_signed(), number.into())
}
