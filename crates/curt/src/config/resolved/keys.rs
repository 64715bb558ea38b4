use curt_core::UnwantedWords;
use curt_keys::{
    BufferSettings, ClaimSettings, FileSettings, KeySettings, LedgerSettings, PoolSettings,
    SnowflakeLayout,
};

use crate::config::check::{at, fits};
use crate::config::{ConfigError, raw, units};

/// The supply of keys; the numbers are checked against each other by the crate that uses them.
pub(super) fn resolve(raw: &raw::Keys) -> Result<KeySettings, ConfigError> {
    let count = |key, value| at(key, fits(value));
    let settings = KeySettings {
        strategy: at("keys.strategy", raw.strategy.parse().map_err(said))?,
        alphabet: at("keys.alphabet", raw.alphabet.parse().map_err(said))?,
        length: count("keys.length", raw.length)?,
        unwanted: at(
            "keys.unwanted_words",
            UnwantedWords::new(raw.unwanted_words.iter().map(String::as_str)).map_err(said),
        )?,
        tick: at("keys.tick", units::duration(&raw.tick))?,
        dry_wait: at("keys.dry_wait", units::duration(&raw.dry_wait))?,
        lease_ttl: at("keys.lease_ttl", units::duration(&raw.lease_ttl))?,
        ledger: LedgerSettings {
            low: raw.ledger.low,
            high: raw.ledger.high,
            mint_batch: count("keys.ledger.mint_batch", raw.ledger.mint_batch)?,
        },
        pool: PoolSettings {
            low: raw.pool.low,
            high: raw.pool.high,
            batch: count("keys.pool.batch", raw.pool.batch)?,
            shards_max: count("keys.pool.shards_max", raw.pool.shards_max)?,
            in_flight: at("keys.pool.in_flight", units::duration(&raw.pool.in_flight))?,
        },
        buffer: BufferSettings {
            capacity: count("keys.buffer.capacity", raw.buffer.capacity)?,
            low: count("keys.buffer.low", raw.buffer.low)?,
        },
        file: FileSettings {
            file_keys: raw.file.file_keys,
            block_keys: count("keys.file.block_keys", raw.file.block_keys)?,
            refill_under: count("keys.file.refill_under", raw.file.refill_under)?,
        },
        claim: ClaimSettings {
            low: raw.claim.low,
            high: raw.claim.high,
            seed_batch: count("keys.claim.seed_batch", raw.claim.seed_batch)?,
        },
        snowflake: SnowflakeLayout {
            datacentre: raw.snowflake.datacentre,
            machine: raw.snowflake.machine,
            reserve_seconds: raw.snowflake.reserve_seconds,
            ..SnowflakeLayout::default()
        },
        sequence_block: raw.sequence_block,
        hash: at("keys.hash", raw.hash.parse().map_err(said))?,
    };
    settings
        .check()
        .map_err(|problem| ConfigError::new(problem.to_string()))?;
    Ok(settings)
}

fn said(problem: impl std::error::Error) -> String {
    problem.to_string()
}
