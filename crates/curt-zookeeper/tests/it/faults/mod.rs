//! ZooKeeper whose leader dies, whose answers are lost, and from which holders are cut off.

mod answers;
mod owners;
mod world;

use curt_testkit::holder::hold_if_asked;
use world::{TTL, open};

/// Not a test of its own: what those that stop and kill a holder start.
#[tokio::test(flavor = "multi_thread")]
async fn holder_process() {
    hold_if_asked(TTL, |address| open(address).leases("process")).await;
}
