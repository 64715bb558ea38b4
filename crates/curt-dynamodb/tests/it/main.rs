//! The DynamoDB adapter on DynamoDB Local.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod accounts;
mod clicks;
mod links;
mod schema;
mod world;
