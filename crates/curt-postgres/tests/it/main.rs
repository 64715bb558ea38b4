//! The PostgreSQL adapter on real servers.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod accounts;
mod agreement;
mod click_scale;
mod clicks;
mod invalidations;
mod ledger;
mod links;
mod prepared;
mod timing;
