//! Links over many nodes.
//!
//! A key belongs to a logical shard, and the newest [`ShardMap`](curt_core::ShardMap) says which node has it. The
//! [`ShardRouter`] serves the ports of links by it: what is about one link is one call to one node, what is about many is
//! asked of all nodes at once. Each process follows the map; a write that was routed by an old one is refused by the
//! engine (L-4), and is routed again.
//!
//! | file | what |
//! |---|---|
//! | `router.rs` | the map of now, how it is followed, and the retry of what it routed wrongly |
//! | `node.rs`, `founding.rs` | nodes, the first map, and the check that each is the database that the map means |
//! | `store.rs`, `index.rs`, `requests.rs`, `totals.rs`, `seeded.rs` | the ports |
//! | `node_index.rs` | the index of one node, for the purge |
//! | `failing.rs` | nodes that do not take writes for now |
//! | `regions.rs` | in which region each node is written, and keys that belong there |
//! | `moves/`, `abandoned.rs` | which shards move, the mover, and the end of a switch whose mover died |
//! | `transfer/` | all links over all nodes, for copies |
//! | `merge.rs`, `cursor.rs` | lists over all nodes, and where their next pages begin |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod abandoned;
mod cursor;
mod failing;
mod founding;
mod index;
mod merge;
mod moves;
mod node;
mod node_index;
mod regions;
mod requests;
mod router;
mod seeded;
mod store;
mod totals;
mod transfer;

pub use founding::{add_nodes, known_nodes, require_unsharded};
pub use moves::{
    MoveError, MovePhase, MoveProgress, MoveRecord, MoveReport, MoverSettings, PlannedMove,
    ShardMover, plan_drain, plan_rebalance,
};
pub use node::ShardNode;
pub use regions::{assign_region, node_regions};
pub use router::{NodeHealth, ShardRouter};
pub use transfer::{ShardedTransfer, TransferNode};

/// Names this crate in errors of its own.
const BACKEND: &str = "shards";
