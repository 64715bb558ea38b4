//! The router over real nodes.

mod dead_node;
mod founding;
mod nodes;
mod reroute;
mod suites;
