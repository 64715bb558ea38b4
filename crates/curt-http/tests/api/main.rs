//! The router, called directly over memory adapters: every endpoint with good and bad requests.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod accounts;
mod api_keys;
mod bad_input;
mod bodies;
mod both_ways;
mod bulk_change;
mod compression;
mod cors;
mod follow;
mod harness;
mod hidden;
mod key_families;
mod links;
mod lockout;
mod matrix;
mod methods;
mod misses;
mod original;
mod overload;
mod pages;
mod pages_account;
mod pages_admin;
mod pages_bulk;
mod pages_clicks;
mod pages_forms;
mod pages_frame;
mod pages_link;
mod pages_link_clicks;
mod pages_links;
mod pages_made;
mod pages_system;
mod preview;
mod qr;
mod quota;
mod repeat;
mod repeated;
mod semantics;
mod sharing;
mod stats;
mod tags;
