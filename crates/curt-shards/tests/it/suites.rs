//! The router against the suites of the ports of links: what holds for one database holds for many.

mod one_node_in_memory {
    use crate::nodes::{MODULO, in_memory};

    curt_testkit::link_tests!(((), in_memory(1, MODULO)));
    curt_testkit::seeded_link_tests!(((), in_memory(1, MODULO)));
}

/// The suites over four nodes of every engine.
macro_rules! over_four_nodes {
    ($placement:ident) => {
        mod in_memory {
            use crate::nodes::{in_memory, $placement};

            curt_testkit::link_tests!(((), in_memory(4, $placement)));
            curt_testkit::seeded_link_tests!(((), in_memory(4, $placement)));
        }

        mod in_files {
            use crate::nodes::{in_files, $placement};

            macro_rules! fresh {
                () => {{
                    let folder = tempfile::tempdir().unwrap();
                    let router = in_files(folder.path(), 4, $placement);
                    (folder, router)
                }};
            }

            curt_testkit::link_tests!(fresh!());
            curt_testkit::seeded_link_tests!(fresh!());
        }

        mod in_databases {
            use curt_testkit::engines::postgres::shared;
            use curt_testkit::need;

            use crate::nodes::{databases, in_databases, $placement};

            macro_rules! fresh {
                () => {{
                    let server = need!(shared());
                    let databases = databases(&server);
                    let urls = databases.each_ref().map(|database| database.url());
                    (databases, in_databases(&urls, $placement))
                }};
            }

            curt_testkit::link_tests!(fresh!());
            curt_testkit::seeded_link_tests!(fresh!());
        }
    };
}

mod by_modulo {
    over_four_nodes!(MODULO);
}

mod by_ring {
    over_four_nodes!(RING);
}

mod by_range {
    over_four_nodes!(RANGE);
}
