use std::sync::{Arc, Mutex};

use curt_core::ports::ClickStream;
use curt_testkit::conformance;

use crate::world::World;

/// Each spool in a folder that outlives the suite.
#[tokio::test(flavor = "multi_thread")]
async fn the_spool_is_a_click_stream() {
    for writers in [1, 3] {
        let worlds = Mutex::new(Vec::new());
        conformance::click_stream::suite(async || {
            let mut world = World::new();
            world.settings.writers = writers;
            let spool = world.open();
            worlds.lock().unwrap().push(world);
            Arc::new(spool) as Arc<dyn ClickStream>
        })
        .await;
    }
}
