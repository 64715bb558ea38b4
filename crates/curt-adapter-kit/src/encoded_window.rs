use curt_core::click_block::NewBlock;
use curt_core::ports::{ClickWindow, StreamPartition};
use curt_core::{ErrorKind, PortError, PortResult};

use crate::off_runtime;
use crate::rollup_runs::{self, NewRun};

/// A window of clicks as engines store it.
#[derive(Clone, Debug)]
pub struct EncodedWindow {
    pub partition: StreamPartition,
    pub from: u64,
    pub to: u64,
    pub runs: Vec<NewRun>,
    pub blocks: Vec<NewBlock>,
}

impl EncodedWindow {
    /// Encodes a window, on a thread that may block: it takes a while, and is done before there is a transaction, which
    /// others would wait for.
    pub async fn encode(
        backend: &'static str,
        op: &'static str,
        window: ClickWindow,
    ) -> PortResult<Self> {
        off_runtime(backend, op, move || {
            let runs = rollup_runs::encode(&window.days).map_err(|damaged| {
                let detail = "a window cannot be encoded; please report this";
                PortError::new(ErrorKind::Bug, backend, op, detail).with_source(damaged)
            })?;
            Ok(Self {
                partition: window.partition,
                from: window.from,
                to: window.to,
                runs,
                blocks: window.blocks,
            })
        })
        .await
    }

    /// Rows that it adds.
    #[must_use]
    pub fn rows(&self) -> usize {
        let chunks = self.runs.iter().map(|run| run.chunks.len()).sum::<usize>();
        self.runs.len() + chunks + self.blocks.len()
    }
}
