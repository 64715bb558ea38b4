//! The caches of links: in memory, and shared between servers.

use std::time::Duration;

use curt_links::ResolverSettings;
use curt_links::resolve::NEGATIVE_TTL_MAX;
use curt_links::shared_cache::{CacheBalance, SharedCacheSettings};

use super::StoreSettings;
use crate::config::check::{at, positive, within};
use crate::config::raw;
use crate::config::{ConfigError, units};

/// Copies that other processes' changes do not reach may live this long (L-2), misses too.
const SHARED_ENTRY_TTL: Duration = Duration::from_secs(1);
/// How long a miss is remembered where every create passes through this process and ends it.
const SOLE_WRITER_MISS_TTL: Duration = Duration::from_secs(2);

fn entry_ttl(raw: &raw::Cache, store: &StoreSettings) -> Result<Option<Duration>, ConfigError> {
    let key = "cache.entry_ttl";
    let is_shared = store.links.kind().is_shared();
    match raw.entry_ttl.as_str() {
        "auto" => Ok(is_shared.then_some(SHARED_ENTRY_TTL)),
        "never" if is_shared => {
            let why = "other processes change links, too: use \"auto\" or a duration";
            at(key, Err(why.to_owned()))
        }
        text => at(key, units::duration_or_never(text)),
    }
}

/// Only a channel makes longer lives safe.
fn confirmed_ttl(raw: &raw::Cache, store: &StoreSettings) -> Result<Option<Duration>, ConfigError> {
    let ttl = at("cache.confirmed_ttl", units::duration(&raw.confirmed_ttl))?;
    Ok(store.invalidations.is_some().then_some(ttl))
}

fn negative_ttl(raw: &raw::Cache, store: &StoreSettings) -> Result<Duration, ConfigError> {
    let key = "cache.negative_ttl";
    if raw.negative_ttl == "auto" {
        return Ok(match store.links.kind().is_shared() {
            true => SHARED_ENTRY_TTL,
            false => SOLE_WRITER_MISS_TTL,
        });
    }
    let ttl = at(key, units::duration(&raw.negative_ttl))?;
    if ttl > NEGATIVE_TTL_MAX {
        let seconds = NEGATIVE_TTL_MAX.as_secs();
        let why = format!("at most {seconds}s, or new links stay unknown too long");
        return at(key, Err(why));
    }
    Ok(ttl)
}

pub(super) fn cache(
    raw: &raw::Cache,
    store: &StoreSettings,
) -> Result<ResolverSettings, ConfigError> {
    Ok(ResolverSettings {
        cache_bytes: at("cache.bytes", units::size(&raw.bytes))?,
        negative_entries: within(
            "cache.negative_entries",
            raw.negative_entries,
            1,
            100_000_000,
        )?,
        negative_ttl: negative_ttl(raw, store)?,
        entry_ttl: entry_ttl(raw, store)?,
        confirmed_ttl: confirmed_ttl(raw, store)?,
        loads_max: within("cache.loads_max", raw.loads_max, 1, 100_000)?,
        load_wait_max: at("cache.load_wait", units::duration(&raw.load_wait))?,
        ..ResolverSettings::default()
    })
}

pub(super) fn shared_cache(raw: &raw::Cache) -> Result<SharedCacheSettings, ConfigError> {
    let points = within(
        "cache.shared_virtual_nodes",
        raw.shared_virtual_nodes,
        1,
        10_000,
    )?;
    Ok(SharedCacheSettings {
        replicas: within("cache.shared_replicas", raw.shared_replicas, 1, 8)?,
        virtual_nodes: u32::try_from(points).unwrap_or(u32::MAX),
        ttl: positive("cache.shared_ttl", &raw.shared_ttl)?,
        deadline: positive("cache.shared_deadline", &raw.shared_deadline)?,
        balance: match raw.shared_balance.as_str() {
            "latency" => CacheBalance::PowerOfTwo,
            "round_robin" => CacheBalance::RoundRobin,
            other => {
                let why = format!("{other:?}: use latency or round_robin");
                return at("cache.shared_balance", Err(why));
            }
        },
    })
}
