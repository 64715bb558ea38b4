//! The MySQL adapter on a real server.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod ledger;
