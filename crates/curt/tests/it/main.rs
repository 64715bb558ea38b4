//! The whole product over its real binary: what a user or an operator can see from outside.
//!
//! Each module is one subject. Tests that want length have a short form here and a full one in `make soak`; see
//! [`length`].

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, helpers of tests included"
)]

mod abuse;
mod alone;
mod api;
mod backup;
mod browser;
mod clicks;
mod client_addresses;
mod deploy;
mod durability;
mod expiry;
mod files;
mod full_disk;
mod given_keys;
mod lifecycle;
mod metrics;
mod operations;
mod page_scale;
mod plan;
mod power_cut;
mod preload;
mod private_files;
mod qr;
mod readme;
mod recycled;
mod report_scale;
mod scale;
mod site;
mod slow_clients;
mod small_disk;
mod strategies;
mod uniqueness;
mod users;
mod wait;
mod wire;
mod wrong_inputs;

use curt_testkit::length;
