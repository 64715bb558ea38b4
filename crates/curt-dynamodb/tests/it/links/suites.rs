//! The link store against the suites of its ports.

use curt_testkit::conformance::transfer::LinkTransferPorts;
use curt_testkit::need;

use crate::world::fresh;

macro_rules! fresh_links {
    () => {{
        let database = need!(fresh());
        let links = database.links();
        (database, links)
    }};
}

curt_testkit::link_tests!(fresh_links!());

curt_testkit::cursor_tests!({
    let database = need!(fresh());
    let cursor = database.cursor();
    (database, cursor)
});

curt_testkit::link_transfer_tests!({
    let database = need!(fresh());
    let ports = LinkTransferPorts {
        links: database.links(),
        transfer: database.link_transfer(),
        seeded: None,
    };
    (database, ports)
});
