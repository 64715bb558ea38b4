//! Live moves: which shards are to move, and the mover that does it.

mod mover;
mod plan;
mod record;
mod run;

pub use mover::{MoveError, MoveProgress, MoveReport, MoverSettings, ShardMover};
pub use plan::{PlannedMove, plan_drain, plan_rebalance};
pub use record::{MovePhase, MoveRecord};
