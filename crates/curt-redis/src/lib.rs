//! Redis behind seven ports: pools of keys on lists, leases, heartbeats, quotas, a cache of links, invalidations of
//! cached links, and windows of clicks.
//!
//! # Addresses
//! | address | means |
//! |---|---|
//! | `redis://host:6379/0` | one server; the port and the database's number may be left out |
//! | `redis://user:password@host` | with an account; `redis://:password@host` for the default one |
//! | `rediss://host?ca=/etc/curt/ca.pem` | over TLS; `ca` names the authority where the system does not know it |
//! | `redis+sentinel://h1,h2:26380,h3/mymaster/0` | the primary that the Sentinels call `mymaster`; their port is 26379 |
//! | `rediss+sentinel://…` | the same, with TLS to servers and Sentinels |
//!
//! Parameters: `prefix` goes before every name that curt uses in the database, so that several installations can share
//! one; `ca` see above; `sentinel_user` and `sentinel_password` where the Sentinels ask for an account of their own.
//! Special characters in a password are percent-encoded. Redis 6.2 or later, not Redis Cluster.
//!
//! # Failures
//! After any failure the connection is given up and a new one made in the background, with the primary looked up again:
//! a fail-over shows as a refusal, as a closed connection or as silence, and only the first says so. Nobody waits for a
//! connection longer than its timeout. What fails before a command was sent is `Unavailable`; a command without an
//! answer is `Timeout`, because it may have been carried out. A primary that has too few replicas (`NOREPLICAS`) or
//! cannot write (`MISCONF`, `OOM`) counts as unavailable, too.
//!
//! # What a fail-over costs
//! Replicas lag. A new primary may bring keys back that were popped, forget keys and batches that were pushed, and
//! forget leases that are held: all of them hints, and only the insert of a link decides. For fewer of these surprises
//! set `min-replicas-to-write 1` and `min-replicas-max-lag 10` on the servers. Of a quota, what was taken within the lag
//! may be taken again. A window of clicks falls back with its offset, and the consumer reads the stream again.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod address;
mod click_counters;
mod connect;
mod failure;
mod heartbeats;
mod invalidations;
mod key_pool;
mod leases;
mod link_cache;
mod quotas;
mod sentinel;

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{
    ClickCounters, Heartbeats, Invalidations, KeyPool, Leases, LinkCache, Quotas,
};
use curt_core::{Clock, PortResult};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, ScriptInvocation};

use address::Route;
use curt_adapter_kit::reconnect::Reconnecting;

/// The adapter's name in errors.
const BACKEND: &str = "redis";

/// How long to wait for Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// For a connection, and again for each further step on the way to the primary.
    pub connect_timeout: Duration,
    /// For an answer.
    pub command_timeout: Duration,
}

impl Default for RedisSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(1),
            command_timeout: Duration::from_secs(2),
        }
    }
}

/// A Redis server or the primary among several. One connection serves all calls.
pub struct Redis {
    prefix: Box<str>,
    route: Arc<Route>,
    settings: RedisSettings,
    link: Reconnecting<MultiplexedConnection>,
}

impl Redis {
    /// Reads the address. Connects with the first call, so that a server that is away keeps nobody from starting.
    pub fn open(address: &str, settings: RedisSettings) -> PortResult<Arc<Self>> {
        let route = Route::parse(address)?;
        let prefix = route.prefix.clone();
        let route = Arc::new(route);
        let to = Arc::clone(&route);
        let connect = move || connect::connect(Arc::clone(&to), settings);
        Ok(Arc::new(Self {
            prefix,
            route,
            settings,
            link: Reconnecting::new(connect),
        }))
    }

    /// The pool shard with this number, which holds at most `cap` keys.
    #[must_use]
    pub fn pool(self: &Arc<Self>, shard: usize, cap: usize) -> Arc<dyn KeyPool> {
        Arc::new(key_pool::RedisKeyPool::new(Arc::clone(self), shard, cap))
    }

    /// The leases as seen by a holder who describes itself as `holder`.
    #[must_use]
    pub fn leases(self: &Arc<Self>, holder: &str) -> Arc<dyn Leases> {
        Arc::new(leases::RedisLeases::new(Arc::clone(self), holder))
    }

    /// The processes that announce themselves here.
    #[must_use]
    pub fn heartbeats(self: &Arc<Self>) -> Arc<dyn Heartbeats> {
        Arc::new(heartbeats::RedisHeartbeats::new(Arc::clone(self)))
    }

    /// Links as they are served, shared between processes.
    #[must_use]
    pub fn link_cache(self: &Arc<Self>) -> Arc<dyn LinkCache> {
        Arc::new(link_cache::RedisLinkCache::new(Arc::clone(self)))
    }

    /// The channel that tells which links have changed. Each subscriber has a connection of its own.
    #[must_use]
    pub fn invalidations(self: &Arc<Self>) -> Arc<dyn Invalidations> {
        Arc::new(invalidations::RedisInvalidations::new(Arc::clone(self)))
    }

    /// Windows of clicks, which expire.
    #[must_use]
    pub fn click_counters(self: &Arc<Self>) -> Arc<dyn ClickCounters> {
        Arc::new(click_counters::RedisClickCounters::new(Arc::clone(self)))
    }

    /// Quotas that every process with this address counts together, by the server's clock.
    #[must_use]
    pub fn quotas(self: &Arc<Self>) -> Arc<dyn Quotas> {
        Arc::new(quotas::RedisQuotas::new(Arc::clone(self), None))
    }

    /// The same by another clock, for tests: nobody can set the server's.
    #[doc(hidden)]
    #[must_use]
    pub fn quotas_by(self: &Arc<Self>, clock: Arc<dyn Clock>) -> Arc<dyn Quotas> {
        Arc::new(quotas::RedisQuotas::new(Arc::clone(self), Some(clock)))
    }

    /// Whether the primary can be asked.
    pub async fn ping(&self) -> PortResult<()> {
        self.run("answer a ping", &redis::cmd("PING")).await
    }

    /// A name in the database.
    fn name(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }

    async fn run<T: FromRedisValue>(&self, op: &'static str, command: &Cmd) -> PortResult<T> {
        let mut current = self.link.get(op).await?;
        let answer = command.query_async(&mut current.connection).await;
        answer.map_err(|error| {
            self.link.lost(&current);
            failure::of_command(op, error)
        })
    }

    /// Runs a script by its hash, and sends it whole to a server that does not know it.
    async fn run_script<T: FromRedisValue>(
        &self,
        op: &'static str,
        script: &ScriptInvocation<'_>,
    ) -> PortResult<T> {
        let mut current = self.link.get(op).await?;
        let answer = script.invoke_async(&mut current.connection).await;
        answer.map_err(|error| {
            self.link.lost(&current);
            failure::of_command(op, error)
        })
    }
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
