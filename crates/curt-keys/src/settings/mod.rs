//! What an operator may choose about keys, with the checks between the numbers.

mod kind;

pub use self::kind::{HashKind, Strategy, UnknownName};

use std::time::Duration;

use curt_core::limits::{GENERATED_KEY_BYTES_MAX, GENERATED_KEY_BYTES_MIN, KEY_BATCH_MAX};
use curt_core::{Alphabet, UnwantedWords};

use crate::error::KeySupplyError;

/// Bits of a generated id, whatever makes it.
pub const ID_BITS: u32 = 48;

/// Everything about keys that can be set.
#[derive(Clone, Debug)]
pub struct KeySettings {
    pub strategy: Strategy,
    pub alphabet: Alphabet,
    /// Symbols of a generated key. Ids have the width that 48 bits need instead.
    pub length: usize,
    /// Words that no generated key may hold.
    pub unwanted: UnwantedWords,
    /// How often a reconciler looks even when nothing woke it.
    pub tick: Duration,
    /// How long a create may wait for an empty buffer before it makes a random key. Zero: not at all.
    pub dry_wait: Duration,
    /// How long a lease on a shard outlives its holder.
    pub lease_ttl: Duration,
    pub ledger: LedgerSettings,
    pub pool: PoolSettings,
    pub buffer: BufferSettings,
    pub file: FileSettings,
    pub claim: ClaimSettings,
    pub snowflake: SnowflakeLayout,
    /// Ids that `sequence` takes from the cursor at a time.
    pub sequence_block: u64,
    pub hash: HashKind,
}

/// `pool`, `status`: free keys in each ledger shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerSettings {
    /// Minting starts below this many free keys.
    pub low: u64,
    /// Minting stops at this many.
    pub high: u64,
    /// Keys that one insert into the ledger carries.
    pub mint_batch: usize,
}

/// `pool`, `status`: waiting keys in each pool shard, or without a pool in the buffer of each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    pub low: u64,
    pub high: u64,
    /// Keys that one batch takes from a ledger.
    pub batch: usize,
    /// Pool shards that one keysync looks after, unless no other process looks after the others. Zero: all.
    pub shards_max: usize,
    /// Longest time between a key being handed out and its link being stored or given up. Without a
    /// pool a batch is kept open for that long after its last key was handed out.
    pub in_flight: Duration,
}

/// The keys that one process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSettings {
    pub capacity: usize,
    /// The buffer is refilled below this many keys.
    pub low: usize,
}

/// `file`: what keygen writes and preload reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSettings {
    /// Keys in one file.
    pub file_keys: u64,
    /// Keys that one preload claims.
    pub block_keys: usize,
    /// The next block is claimed below this many keys.
    pub refill_under: usize,
}

/// `claim`: rows waiting to be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimSettings {
    pub low: u64,
    pub high: u64,
    /// Rows that one insert seeds.
    pub seed_batch: usize,
}

/// How a snowflake id divides its 48 bits, and which generator this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnowflakeLayout {
    /// Seconds since 2026-01-01.
    pub time_bits: u32,
    pub datacentre_bits: u32,
    pub machine_bits: u32,
    pub sequence_bits: u32,
    pub datacentre: u64,
    pub machine: u64,
    /// Seconds that are reserved durably at a time, before any of them is used. A crash skips at most these.
    pub reserve_seconds: u64,
}

impl Default for KeySettings {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            alphabet: Alphabet::Base62,
            length: 7,
            unwanted: UnwantedWords::default(),
            tick: Duration::from_secs(1),
            dry_wait: Duration::from_millis(5),
            lease_ttl: Duration::from_secs(30),
            ledger: LedgerSettings {
                low: 10_000,
                high: 20_000,
                mint_batch: 2_000,
            },
            pool: PoolSettings::default(),
            buffer: BufferSettings {
                capacity: 800,
                low: 400,
            },
            file: FileSettings {
                file_keys: 1_000_000,
                block_keys: 10_000,
                refill_under: 2_000,
            },
            claim: ClaimSettings {
                low: 10_000,
                high: 20_000,
                seed_batch: 1_000,
            },
            snowflake: SnowflakeLayout::default(),
            sequence_block: 1_000,
            hash: HashKind::default(),
        }
    }
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            low: 10_000,
            high: 20_000,
            batch: KEY_BATCH_MAX,
            shards_max: 0,
            in_flight: Duration::from_secs(10),
        }
    }
}

impl Default for SnowflakeLayout {
    fn default() -> Self {
        Self {
            time_bits: 30,
            datacentre_bits: 1,
            machine_bits: 3,
            sequence_bits: 14,
            datacentre: 0,
            machine: 0,
            reserve_seconds: 10,
        }
    }
}

impl KeySettings {
    /// Checks every number against the others, for all strategies: a setting that is wrong today must not wait until
    /// the strategy is switched.
    pub fn check(&self) -> Result<(), KeySupplyError> {
        let lengths = GENERATED_KEY_BYTES_MIN..=GENERATED_KEY_BYTES_MAX;
        if !lengths.contains(&self.length) {
            return Err(KeySupplyError::Settings(format!(
                "keys.length is {}: use {GENERATED_KEY_BYTES_MIN} to {GENERATED_KEY_BYTES_MAX}",
                self.length
            )));
        }
        if self.tick.is_zero() || self.lease_ttl < Duration::from_secs(1) {
            return Err(KeySupplyError::Settings(
                "keys.tick must not be zero, and keys.lease_ttl must be a second or more".into(),
            ));
        }
        check_watermarks("keys.ledger", self.ledger.low, self.ledger.high)?;
        check_watermarks("keys.pool", self.pool.low, self.pool.high)?;
        check_watermarks("keys.claim", self.claim.low, self.claim.high)?;
        check_watermarks(
            "keys.buffer",
            self.buffer.low as u64,
            self.buffer.capacity as u64,
        )?;
        self.check_batches()?;
        self.snowflake.check()
    }

    fn check_batches(&self) -> Result<(), KeySupplyError> {
        if self.pool.batch == 0 || self.pool.batch > KEY_BATCH_MAX {
            return Err(KeySupplyError::Settings(format!(
                "keys.pool.batch is {}: use 1 to {KEY_BATCH_MAX}",
                self.pool.batch
            )));
        }
        let never_empty = [
            ("keys.ledger.mint_batch", self.ledger.mint_batch as u64),
            ("keys.claim.seed_batch", self.claim.seed_batch as u64),
            ("keys.file.block_keys", self.file.block_keys as u64),
            ("keys.sequence_block", self.sequence_block),
        ];
        for (name, value) in never_empty {
            if value == 0 {
                return Err(KeySupplyError::Settings(format!("{name} must not be 0")));
            }
        }
        if self.file.file_keys < self.file.block_keys as u64 {
            return Err(KeySupplyError::Settings(
                "keys.file.file_keys must be at least keys.file.block_keys".into(),
            ));
        }
        Ok(())
    }
}

fn check_watermarks(name: &str, low: u64, high: u64) -> Result<(), KeySupplyError> {
    if low == 0 || low >= high {
        return Err(KeySupplyError::Settings(format!(
            "{name}: the low watermark ({low}) must be above 0 and below the high watermark ({high})"
        )));
    }
    Ok(())
}

impl SnowflakeLayout {
    /// The four parts must fill the 48 bits exactly, and this generator's numbers must fit their parts.
    pub fn check(&self) -> Result<(), KeySupplyError> {
        let parts = [
            self.time_bits,
            self.datacentre_bits,
            self.machine_bits,
            self.sequence_bits,
        ];
        let sum: u64 = parts.iter().map(|&bits| u64::from(bits)).sum();
        if sum != u64::from(ID_BITS) || self.time_bits == 0 || self.sequence_bits == 0 {
            return Err(KeySupplyError::Settings(format!(
                "keys.snowflake: time, data centre, machine and sequence have {sum} bits together; \
                 they must have {ID_BITS}, with some for time and sequence"
            )));
        }
        if self.datacentre >> self.datacentre_bits != 0 || self.machine >> self.machine_bits != 0 {
            return Err(KeySupplyError::Settings(format!(
                "keys.snowflake: data centre {} or machine {} does not fit its bits",
                self.datacentre, self.machine
            )));
        }
        if self.reserve_seconds == 0 {
            return Err(KeySupplyError::Settings(
                "keys.snowflake.reserve_seconds must not be 0".into(),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_sound_and_wrong_numbers_are_named() {
        assert!(KeySettings::default().check().is_ok());
        let wrong = |change: fn(&mut KeySettings), named: &str| {
            let mut settings = KeySettings::default();
            change(&mut settings);
            let why = settings.check().unwrap_err().to_string();
            assert!(why.contains(named), "{why}");
        };
        wrong(|s| s.length = 3, "keys.length");
        wrong(|s| s.length = 23, "keys.length");
        wrong(|s| s.tick = Duration::ZERO, "keys.tick");
        wrong(|s| s.ledger.low = s.ledger.high, "keys.ledger");
        wrong(|s| s.pool.low = 0, "keys.pool");
        wrong(|s| s.pool.batch = 1_001, "keys.pool.batch");
        wrong(|s| s.buffer.low = 9_999, "keys.buffer");
        wrong(|s| s.file.block_keys = 0, "keys.file.block_keys");
        wrong(|s| s.file.file_keys = 1, "keys.file.file_keys");
        wrong(|s| s.sequence_block = 0, "keys.sequence_block");
        wrong(|s| s.snowflake.time_bits = 31, "49 bits");
        wrong(|s| s.snowflake.machine = 8, "machine 8");
        wrong(|s| s.snowflake.datacentre = 2, "data centre 2");
    }
}
