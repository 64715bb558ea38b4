use std::sync::Arc;

use curt_testkit::conformance::clicks::dead_letters::Letters;
use curt_testkit::conformance::clicks::source::Written;

use crate::world::World;

curt_testkit::click_source_tests!(written(3));
curt_testkit::dead_letter_tests!(letters());

mod one_writer {
    use super::*;

    curt_testkit::click_source_tests!(written(1));
}

fn written(writers: u32) -> (World, Written) {
    let mut world = World::new();
    world.settings.writers = writers;
    let spool = world.open();
    let writers = (0..writers).map(|number| spool.take_writer(number).unwrap());
    let writers = writers.collect();
    let source = Arc::new(spool);
    (world, Written { source, writers })
}

fn letters() -> (World, Letters) {
    let world = World::new();
    let spool = Arc::new(world.open());
    let port = spool.clone();
    let count = move |reason| {
        spool
            .counts()
            .dead_letters
            .get(reason)
            .copied()
            .unwrap_or(0)
    };
    let count = Box::new(count);
    (world, Letters { port, count })
}
