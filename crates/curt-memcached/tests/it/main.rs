//! The Memcached adapter on real servers.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod faults;

use std::sync::Arc;

use curt_memcached::{Memcached, MemcachedSettings};
use curt_testkit::conformance::caches::link_cache::TimedCache;
use curt_testkit::engines::memcached::Server;
use curt_testkit::need;

fn open(url: &str) -> Arc<Memcached> {
    Memcached::open(url, MemcachedSettings::default()).unwrap()
}

curt_testkit::link_cache_tests!({
    let server = need!(Server::start(64));
    let cache = open(&server.url()).link_cache();
    (server, TimedCache { cache, clock: None })
});
