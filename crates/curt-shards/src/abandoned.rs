//! Moves whose mover died at the one moment when its shard takes no writes.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use curt_core::{Clock, UnixMillis};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::moves::{MoveError, MovePhase, MoveRecord, MoverSettings, ShardMover};
use crate::node::ShardNode;
use crate::router::ShardRouter;

/// How long a mover may be silent while it switches, by the clock of who looks at it. It gives up sooner by itself.
const SILENT_MAX: Duration = Duration::from_millis(750);

/// The sign of life of a mover that switches, and since when it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenSwitch {
    fence: u64,
    seen: UnixMillis,
    since: Instant,
}

impl ShardRouter {
    /// Ends a switch whose mover is dead, so that writes to the shard go on, and says whether there was one. To be called
    /// a few times a second by every server: one of them does it.
    pub async fn end_abandoned_switch(
        &self,
        clock: &Arc<dyn Clock>,
        stop: &CancellationToken,
    ) -> Result<bool, MoveError> {
        let nodes = self.nodes.iter();
        let nodes = nodes.map(|node| ShardNode::new(node.name.clone(), Arc::clone(&node.shards)));
        let settings = MoverSettings {
            items_per_second: None,
            holder: "a server".into(),
            takeover_after: Duration::ZERO,
        };
        let clock = Arc::clone(clock);
        let mover = ShardMover::new(nodes.collect(), Arc::clone(&self.maps), clock, settings);
        let record = mover.unfinished().await?;
        let switch = record.filter(|record| record.phase == MovePhase::Switch);
        if !self.is_abandoned(switch.as_ref()) {
            return Ok(false);
        }
        match mover.resume(stop, &|_| {}).await {
            Ok(ended) => Ok(ended.is_some()),
            // Another server was faster.
            Err(MoveError::Busy(_) | MoveError::TakenOver) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the mover of a switch has given no sign of life for too long.
    fn is_abandoned(&self, switch: Option<&MoveRecord>) -> bool {
        let mut known = self.switch.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(record) = switch else {
            *known = None;
            return false;
        };
        let (fence, seen) = (record.fence, record.seen);
        match &*known {
            Some(known) if (known.fence, known.seen) == (fence, seen) => {
                known.since.elapsed() >= SILENT_MAX
            }
            _ => {
                let since = Instant::now();
                *known = Some(SeenSwitch { fence, seen, since });
                false
            }
        }
    }
}
