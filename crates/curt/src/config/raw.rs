//! The settings as they are written: every key of the default file, nothing interpreted yet.

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    pub(super) data_dir: String,
    pub(super) server: Server,
    pub(super) store: Store,
    pub(super) sqlite: Sqlite,
    pub(super) postgres: Postgres,
    pub(super) cache: Cache,
    pub(super) keys: Keys,
    pub(super) links: Links,
    pub(super) accounts: Accounts,
    pub(super) limits: Limits,
    pub(super) clicks: Clicks,
    pub(super) purge: Purge,
    pub(super) log: Log,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    pub(super) listen: String,
    pub(super) admin_listen: String,
    pub(super) public_url: String,
    pub(super) own_hosts: Vec<String>,
    pub(super) workers: u64,
    pub(super) api_threads: u64,
    pub(super) io_uring: bool,
    pub(super) connections_max: u64,
    pub(super) connections_per_address: u64,
    pub(super) header_timeout: String,
    pub(super) idle_timeout: String,
    pub(super) body_timeout: String,
    pub(super) bodies_max: String,
    pub(super) bulk_per_client: u64,
    pub(super) write_timeout: String,
    pub(super) drain_delay: String,
    pub(super) shutdown_grace: String,
    pub(super) permanent_max_age: String,
    pub(super) referrer_policy: String,
    pub(super) anonymous_create: bool,
    pub(super) public_metrics: bool,
    pub(super) trusted_proxies: Vec<String>,
    pub(super) live_feeds_max: u64,
    pub(super) live_feeds_per_user: u64,
    pub(super) live_feeds_per_address: u64,
    pub(super) live_feeds_for_admins: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Store {
    pub(super) links: String,
    pub(super) clicks: String,
    pub(super) keys: Vec<String>,
    pub(super) keys_form: String,
    pub(super) pool: Vec<String>,
    pub(super) files: String,
    pub(super) leases: String,
    pub(super) cursor: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sqlite {
    pub(super) synchronous: String,
    pub(super) readers: u64,
    pub(super) writer_cache: String,
    pub(super) reader_cache: String,
    pub(super) mmap: String,
    pub(super) checkpoint: String,
    pub(super) wal_max: String,
    pub(super) busy_timeout: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Postgres {
    pub(super) lookup_connections: u64,
    pub(super) write_connections: u64,
    pub(super) background_connections: u64,
    pub(super) lookup_timeout: String,
    pub(super) write_timeout: String,
    pub(super) background_timeout: String,
    pub(super) flush_timeout: String,
    pub(super) connect_timeout: String,
    pub(super) standby_after: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cache {
    pub(super) bytes: String,
    pub(super) entry_ttl: String,
    pub(super) miss_entries: u64,
    pub(super) miss_ttl: String,
    pub(super) loads_max: u64,
    pub(super) load_wait: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    pub(super) strategy: String,
    pub(super) alphabet: String,
    pub(super) length: u64,
    pub(super) unwanted_words: Vec<String>,
    pub(super) tick: String,
    pub(super) dry_wait: String,
    pub(super) lease_ttl: String,
    pub(super) sequence_block: u64,
    pub(super) hash: String,
    pub(super) ledger: KeyLedger,
    pub(super) pool: KeyPool,
    pub(super) buffer: KeyBuffer,
    pub(super) file: KeyFiles,
    pub(super) claim: KeyClaim,
    pub(super) snowflake: Snowflake,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyLedger {
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) mint_batch: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyPool {
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) batch: u64,
    pub(super) shards_max: u64,
    pub(super) in_flight: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyBuffer {
    pub(super) capacity: u64,
    pub(super) low: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyFiles {
    pub(super) file_keys: u64,
    pub(super) block_keys: u64,
    pub(super) refill_under: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyClaim {
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) seed_batch: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Snowflake {
    pub(super) datacentre: u64,
    pub(super) machine: u64,
    pub(super) reserve_seconds: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Links {
    pub(super) target_bytes_max: u64,
    pub(super) schemes: Vec<String>,
    pub(super) default_expiry: String,
    pub(super) default_status: u64,
    pub(super) blocklist: String,
    pub(super) blocklist_reload: String,
    pub(super) private_denied: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Accounts {
    pub(super) sign_up: String,
    pub(super) disabled_links: String,
    pub(super) session_idle: String,
    pub(super) session_max: String,
    pub(super) password_memory: String,
    pub(super) password_passes: u64,
    pub(super) password_hashers: u64,
    pub(super) link_password_hashers: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) creations_per_key: String,
    pub(super) creations_per_user: String,
    pub(super) creations_per_address: String,
    pub(super) redirections_per_key: String,
    pub(super) redirections_per_user: String,
    pub(super) misses_per_address: String,
    pub(super) sign_ins_per_address: String,
    pub(super) sign_ins_per_account: String,
    pub(super) sign_ups_per_address: String,
    pub(super) password_checks_per_user: String,
    pub(super) link_passwords_per_address: String,
    pub(super) link_passwords_per_link: String,
    pub(super) password_links_per_user: String,
    pub(super) password_links_per_address: String,
    pub(super) scans_running: u64,
    pub(super) scans_waiting: u64,
    pub(super) scans_per_user: u64,
    pub(super) exports_running: u64,
    pub(super) exports_per_user: u64,
    pub(super) ipv6_site_factor: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Clicks {
    pub(super) capture: bool,
    pub(super) spool: String,
    pub(super) spool_max: String,
    pub(super) spool_segment: String,
    pub(super) spool_sync: String,
    pub(super) disk_reserve: String,
    pub(super) flush_every: String,
    pub(super) retention: String,
    pub(super) retention_size: String,
    pub(super) rollup_retention: String,
    pub(super) addresses: bool,
    pub(super) dead_letters_max: String,
    pub(super) countries: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Purge {
    pub(super) on_access: bool,
    pub(super) scheduled: bool,
    pub(super) every: String,
    pub(super) batch: u64,
    pub(super) rate_max: u64,
    pub(super) recycle: bool,
    pub(super) quarantine: String,
    pub(super) clock_jump_max: String,
    pub(super) clock_settle: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Log {
    pub(super) level: String,
    pub(super) format: String,
}
