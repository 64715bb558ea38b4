//! The ports: what curt asks of an outside engine.
//!
//! | port | promises | asked by |
//! |---|---|---|
//! | [`LinkStore`] | links by key, one conditional insert per key | create, manage, resolve |
//! | [`LinkIndex`] | links by owner, age and expiry | manage, purge |
//! | [`LinkTotals`] | how many links there are | keys, status |
//! | [`Idempotency`] | plans and outcomes of repeatable requests | create, purge |
//! | [`SeededLinks`] | rows to be claimed; optional | keygen, create |
//! | [`LinkShards`] | one node of many: sealing, copying and giving up of shards that move; optional | shards |
//! | [`LinkTransfer`] | everything of a links database, to be copied to another one; optional | copy |
//! | [`ShardMaps`] | the map of shards to nodes, which moves by compare-and-set | shards |
//! | [`MapNotes`] | notes about moves and copies, which change by compare-and-set | shards, copy |
//! | [`LinkCache`] | served forms of links, shared between processes | resolve |
//! | [`Invalidations`] | changed links, told to every process | resolve |
//! | [`KeyLedger`] | the durable inventory of minted keys | keygen, keysync |
//! | [`KeyPool`] | a fast queue of keys, one per shard | keysync, buffer |
//! | [`KeyFile`] | files of fixed-width keys | keygen, preload |
//! | [`Cursor`] | a number that moves by compare-and-set | preload, id strategies |
//! | [`Leases`] | rights to work on a shard, for efficiency only | keygen, keysync |
//! | [`Heartbeats`] | running instances, and what each holds | keys |
//! | [`ClickSink`] | appending to a click stream that processes share, once per sequence number | capture |
//! | [`ClickSource`] | an ordered, partitioned log of click records | consume |
//! | [`DeadLetters`] | records that cannot be read | consume |
//! | [`FlushChannel`] | questions of reports to the consumers of all processes | consume |
//! | [`ClickCounters`] | windows of clicks in a fast store, tied to stream offsets | consume |
//! | [`ClickStore`] | durable rollups and clicks, written once per window | consume |
//! | [`ClickReports`] | what is read from them | report |
//! | [`Accounts`] | users and what belongs to them: API keys, sessions, permissions, the audit log | api |
//! | [`Quotas`] | how much of something is left | api, redirect |
//!
//! Every method's documentation answers four questions: what if it is absent, what if it is there twice, what if
//! the call timed out, what if it is called twice. A timed-out write is always *unknown*: it may have happened.
//! Ports are used as `Arc<dyn Port>`; one conformance suite per port says when an adapter is done.

mod accounts;
mod click_counters;
mod click_reports;
mod click_sink;
mod click_source;
mod click_store;
mod click_transfer;
mod cursor;
mod dead_letters;
mod flush_channel;
mod heartbeats;
mod idempotency;
mod invalidations;
mod key_file;
mod key_ledger;
mod key_pool;
mod leases;
mod link_cache;
mod link_homes;
mod link_index;
mod link_ports;
mod link_shards;
mod link_store;
mod link_totals;
mod link_transfer;
mod quotas;
mod seeded_links;
mod shard_maps;
mod transfer;

pub use accounts::*;
pub use click_counters::*;
pub use click_reports::*;
pub use click_sink::*;
pub use click_source::*;
pub use click_store::*;
pub use click_transfer::*;
pub use cursor::*;
pub use dead_letters::*;
pub use flush_channel::{FlushAsk, FlushChannel};
pub use heartbeats::*;
pub use idempotency::*;
pub use invalidations::*;
pub use key_file::*;
pub use key_ledger::*;
pub use key_pool::*;
pub use leases::*;
pub use link_cache::*;
pub use link_homes::LinkHomes;
pub use link_index::*;
pub use link_ports::*;
pub use link_shards::*;
pub use link_store::*;
pub use link_totals::*;
pub use link_transfer::*;
pub use quotas::*;
pub use seeded_links::*;
pub use shard_maps::*;
pub use transfer::*;
