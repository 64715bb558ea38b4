//! The router over real nodes.

mod dead_node;
mod founding;
mod mortal;
mod moves;
mod nodes;
mod reroute;
mod suites;
