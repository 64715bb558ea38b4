//! The settings as they are written: every key of the default file, nothing interpreted yet.

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    pub(crate) data_dir: String,
    pub(crate) region: String,
    pub(crate) server: Server,
    pub(crate) store: Store,
    pub(crate) sqlite: Sqlite,
    pub(crate) postgres: Postgres,
    pub(crate) mysql: Mysql,
    pub(crate) cassandra: Cassandra,
    pub(crate) dynamodb: DynamoDb,
    pub(crate) redis: Redis,
    pub(crate) memcached: Memcached,
    pub(crate) zookeeper: ZooKeeper,
    pub(crate) kafka: Kafka,
    pub(crate) hdfs: Hdfs,
    pub(crate) s3: S3,
    pub(crate) cache: Cache,
    pub(crate) keys: Keys,
    pub(crate) links: Links,
    pub(crate) pages: Pages,
    pub(crate) accounts: Accounts,
    pub(crate) limits: Limits,
    pub(crate) clicks: Clicks,
    pub(crate) purge: Purge,
    pub(crate) log: Log,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    pub(crate) listen: String,
    pub(crate) admin_listen: String,
    pub(crate) agent_listen: String,
    pub(crate) public_url: String,
    pub(crate) own_hosts: Vec<String>,
    pub(crate) workers: u64,
    pub(crate) api_threads: u64,
    pub(crate) huge_pages: bool,
    pub(crate) io_uring: bool,
    pub(crate) connections_max: u64,
    pub(crate) connections_per_address: u64,
    pub(crate) header_timeout: String,
    pub(crate) idle_timeout: String,
    pub(crate) body_timeout: String,
    pub(crate) bodies_max: String,
    pub(crate) bulk_per_client: u64,
    pub(crate) write_timeout: String,
    pub(crate) drain_delay: String,
    pub(crate) shutdown_grace: String,
    pub(crate) permanent_max_age: String,
    pub(crate) referrer_policy: String,
    pub(crate) anonymous_create: bool,
    pub(crate) public_metrics: bool,
    pub(crate) trusted_proxies: Vec<String>,
    pub(crate) proxy_protocol: String,
    pub(crate) cors_origins: Vec<String>,
    pub(crate) compression: bool,
    pub(crate) live_feeds_max: u64,
    pub(crate) live_feeds_per_user: u64,
    pub(crate) live_feeds_per_address: u64,
    pub(crate) live_feeds_for_admins: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Store {
    pub(crate) links: Vec<String>,
    pub(crate) shard_map: String,
    pub(crate) accounts: String,
    pub(crate) clicks: String,
    pub(crate) stream: String,
    pub(crate) counters: String,
    pub(crate) cache: Vec<String>,
    pub(crate) invalidations: String,
    pub(crate) quotas: String,
    pub(crate) keys: Vec<String>,
    pub(crate) keys_form: String,
    pub(crate) pool: Vec<String>,
    pub(crate) files: String,
    pub(crate) leases: String,
    pub(crate) cursor: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sqlite {
    pub(crate) synchronous: String,
    pub(crate) readers: u64,
    pub(crate) writer_cache: String,
    pub(crate) reader_cache: String,
    pub(crate) mmap: String,
    pub(crate) checkpoint: String,
    pub(crate) checkpoint_idle: String,
    pub(crate) wal_max: String,
    pub(crate) busy_timeout: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Postgres {
    pub(crate) lookup_connections: u64,
    pub(crate) write_connections: u64,
    pub(crate) background_connections: u64,
    pub(crate) click_connections: u64,
    pub(crate) lookup_timeout: String,
    pub(crate) write_timeout: String,
    pub(crate) background_timeout: String,
    pub(crate) flush_timeout: String,
    pub(crate) connect_timeout: String,
    pub(crate) standby_after: String,
    pub(crate) read_from: String,
    pub(crate) replica_choice: String,
    pub(crate) replica_lag_max: String,
    pub(crate) totals_interval: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cassandra {
    pub(crate) consistency: String,
    pub(crate) serial_consistency: String,
    pub(crate) connections: u64,
    pub(crate) connect_timeout: String,
    pub(crate) call_timeout: String,
    pub(crate) background_timeout: String,
    pub(crate) totals_interval: String,
    pub(crate) replication: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DynamoDb {
    pub(crate) connections: u64,
    pub(crate) connect_timeout: String,
    pub(crate) call_timeout: String,
    pub(crate) background_timeout: String,
    pub(crate) totals_interval: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mysql {
    pub(crate) connections: u64,
    pub(crate) connect_timeout: String,
    pub(crate) call_timeout: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redis {
    pub(crate) connect_timeout: String,
    pub(crate) command_timeout: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Memcached {
    pub(crate) connect_timeout: String,
    pub(crate) answer_timeout: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ZooKeeper {
    pub(crate) session_timeout: String,
    pub(crate) operation_timeout: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kafka {
    pub(crate) delivery_timeout: String,
    pub(crate) session_timeout: String,
    pub(crate) partitions: u64,
    pub(crate) replicas: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hdfs {
    pub(crate) answer_timeout: String,
    pub(crate) transfer_timeout: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct S3 {
    pub(crate) connect_timeout: String,
    pub(crate) request_timeout: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cache {
    pub(crate) bytes: String,
    pub(crate) entry_ttl: String,
    pub(crate) confirmed_ttl: String,
    pub(crate) publish_wait: String,
    pub(crate) shared_ttl: String,
    pub(crate) shared_replicas: u64,
    pub(crate) shared_virtual_nodes: u64,
    pub(crate) shared_deadline: String,
    pub(crate) shared_balance: String,
    pub(crate) negative_entries: u64,
    pub(crate) negative_ttl: String,
    pub(crate) loads_max: u64,
    pub(crate) load_wait: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    pub(crate) strategy: String,
    pub(crate) alphabet: String,
    pub(crate) length: u64,
    pub(crate) unwanted_words: Vec<String>,
    pub(crate) tick: String,
    pub(crate) dry_wait: String,
    pub(crate) lease_ttl: String,
    pub(crate) sequence_block: u64,
    pub(crate) hash: String,
    pub(crate) ledger: KeyLedger,
    pub(crate) pool: KeyPool,
    pub(crate) buffer: KeyBuffer,
    pub(crate) file: KeyFiles,
    pub(crate) claim: KeyClaim,
    pub(crate) snowflake: Snowflake,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyLedger {
    pub(crate) low: u64,
    pub(crate) high: u64,
    pub(crate) mint_batch: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyPool {
    pub(crate) low: u64,
    pub(crate) high: u64,
    pub(crate) batch: u64,
    pub(crate) shards_max: u64,
    pub(crate) in_flight: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyBuffer {
    pub(crate) capacity: u64,
    pub(crate) low: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyFiles {
    pub(crate) file_keys: u64,
    pub(crate) block_keys: u64,
    pub(crate) refill_under: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyClaim {
    pub(crate) low: u64,
    pub(crate) high: u64,
    pub(crate) seed_batch: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Snowflake {
    pub(crate) datacentre: u64,
    pub(crate) machine: u64,
    pub(crate) reserve_seconds: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Links {
    pub(crate) target_bytes_max: u64,
    pub(crate) schemes: Vec<String>,
    pub(crate) default_expiry: String,
    pub(crate) grace: String,
    pub(crate) default_status: u64,
    pub(crate) blocklist: String,
    pub(crate) blocklist_reload: String,
    pub(crate) private_denied: u64,
    pub(crate) placement: String,
    pub(crate) virtual_nodes: u64,
    pub(crate) move_rate: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pages {
    pub(crate) name: String,
    pub(crate) accent: String,
    pub(crate) not_found_url: String,
    pub(crate) qr_logo: String,
    pub(crate) preview: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accounts {
    pub(crate) sign_up: String,
    pub(crate) disabled_links: String,
    pub(crate) session_idle: String,
    pub(crate) session_max: String,
    pub(crate) password_memory: String,
    pub(crate) password_passes: u64,
    pub(crate) password_hashers: u64,
    pub(crate) link_password_hashers: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) creations_per_key: String,
    pub(crate) creations_per_user: String,
    pub(crate) creations_per_address: String,
    pub(crate) redirections_per_key: String,
    pub(crate) redirections_per_user: String,
    pub(crate) misses_per_address: String,
    pub(crate) sign_ins_per_address: String,
    pub(crate) sign_ins_per_account: String,
    pub(crate) sign_ups_per_address: String,
    pub(crate) password_checks_per_user: String,
    pub(crate) link_passwords_per_address: String,
    pub(crate) link_passwords_per_link: String,
    pub(crate) password_links_per_user: String,
    pub(crate) password_links_per_address: String,
    pub(crate) scans_running: u64,
    pub(crate) scans_waiting: u64,
    pub(crate) scans_per_user: u64,
    pub(crate) exports_running: u64,
    pub(crate) exports_per_user: u64,
    pub(crate) ipv6_site_factor: u64,
    pub(crate) shared_timeout: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clicks {
    pub(crate) capture: bool,
    pub(crate) spool_folder: String,
    pub(crate) stream_addresses: String,
    pub(crate) spool_max: String,
    pub(crate) spool_segment: String,
    pub(crate) spool_sync: String,
    pub(crate) disk_reserve: String,
    pub(crate) flush_every: String,
    pub(crate) window_memory: String,
    pub(crate) cpu_share: f64,
    pub(crate) retention: String,
    pub(crate) retention_size: String,
    pub(crate) rollup_retention: String,
    pub(crate) addresses: bool,
    pub(crate) dead_letters_max: String,
    pub(crate) rules: String,
    pub(crate) countries: String,
    pub(crate) networks: String,
    pub(crate) files_reload: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Purge {
    pub(crate) on_access: bool,
    pub(crate) scheduled: bool,
    pub(crate) every: String,
    pub(crate) batch: u64,
    pub(crate) rate_max: u64,
    pub(crate) recycle: bool,
    pub(crate) quarantine: String,
    pub(crate) clock_jump_max: String,
    pub(crate) clock_settle: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) level: String,
    pub(crate) format: String,
    pub(crate) access: String,
    pub(crate) access_file: String,
}
