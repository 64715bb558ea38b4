//! The router over real nodes, and moves between them.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, helpers of tests included"
)]

mod dead_node;
mod founding;
mod live_moves;
mod mortal;
mod moves;
mod nodes;
mod regions;
mod reroute;
mod suites;
mod transfer;
mod world;
