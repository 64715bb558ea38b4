//! ZooKeeper whose leader dies, whose answers are lost, and from which holders are cut off.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]
#![cfg(all(feature = "zookeeper", feature = "postgres"))]

mod answers;
#[path = "../holder/mod.rs"]
mod holder;
mod owners;
mod world;

use crate::holder::hold_if_asked;
use crate::world::{TTL, open};

/// Not a test of its own: what those that stop and kill a holder start.
#[tokio::test(flavor = "multi_thread")]
async fn holder_process() {
    hold_if_asked(TTL, |address| open(address).locks("process")).await;
}
