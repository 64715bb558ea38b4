//! Every metric and every log event of the product, named once. The rest of the code uses these constants.

/// Prometheus metrics. Counters end in `_total` when exposed; the client library adds the suffix.
pub mod metric {
    /// Redirects answered, by outcome: `hit`, `loaded`, `absent`, `gone`, `error`.
    pub const REDIRECTS: &str = "curt_redirects";
    /// Time from reading the request for a live link to sending the redirect, seconds.
    pub const REDIRECT_SECONDS: &str = "curt_redirect_seconds";
    /// Requests beyond `limits.misses_per_address`: answered with 429, and in no report.
    pub const MISSES_UNRECORDED: &str = "curt_misses_unrecorded";
    /// Requests that the API answered, by route, method and status.
    pub const HTTP_REQUESTS: &str = "curt_http_requests";
    /// Time to answer an API request, seconds.
    pub const HTTP_REQUEST_SECONDS: &str = "curt_http_request_seconds";
    /// Requests answered with 503 because too many like them were under way.
    pub const HTTP_REQUESTS_SHED: &str = "curt_http_requests_shed";
    /// Connections open now.
    pub const HTTP_CONNECTIONS: &str = "curt_http_connections";
    /// Part of its usual load that `server.agent_listen` asks balancers for, percent.
    pub const LOAD_WEIGHT: &str = "curt_load_weight";
    /// Connections closed by us, by reason: `header_timeout`, `body_timeout`, `write_timeout`, `idle`, `limit`,
    /// `address_limit`, `overload`, `head_too_large`, `malformed`, `proxy_header`,
    /// `shutdown`.
    pub const HTTP_CONNECTIONS_CUT: &str = "curt_http_connections_cut";
    /// Bytes of `server.bodies_max` in use now.
    pub const HTTP_BODY_BYTES: &str = "curt_http_body_bytes";
    /// Requests refused before their body was read, by reason: `body_budget`, `body_share`, `bulk_at_once`.
    pub const HTTP_REQUESTS_REFUSED: &str = "curt_http_requests_refused";
    /// Links created, by the origin of their key.
    pub const LINKS_CREATED: &str = "curt_links_created";
    /// Links edited.
    pub const LINKS_EDITED: &str = "curt_links_edited";
    /// Links deleted by their owner.
    pub const LINKS_DELETED: &str = "curt_links_deleted";
    /// Links purged after expiry, by how: `access`, `schedule`.
    pub const LINKS_PURGED: &str = "curt_links_purged";
    /// Look-ups in the process's cache, by result: `hit`, `miss`, `absent`.
    pub const CACHE_LOOKUPS: &str = "curt_cache_lookups";
    /// Bytes that the process's cache holds.
    pub const CACHE_BYTES: &str = "curt_cache_bytes";
    /// Links that the process's cache holds.
    pub const CACHE_LINKS: &str = "curt_cache_links";
    /// Loads of links that were not in the process's cache, by where from: `shared` (the cache that servers share), `store`.
    pub const CACHE_LOADS: &str = "curt_cache_loads";
    /// Cached links that were loaded again before they ended, because they are wanted often.
    pub const CACHE_REFRESHES: &str = "curt_cache_refreshes";
    /// Look-ups in the shared cache, by result: `hit`, `miss`, `outdated`, `error`, `skipped`.
    pub const SHARED_CACHE_LOOKUPS: &str = "curt_shared_cache_lookups";
    /// Links that were to be put into the shared cache, one for each server, by result: `done`, `failed`, `dropped`.
    pub const SHARED_CACHE_FILLS: &str = "curt_shared_cache_fills";
    /// Entries of the shared cache that were to be invalidated, one for each server, by result: `done`, `failed`.
    pub const SHARED_CACHE_INVALIDATIONS: &str = "curt_shared_cache_invalidations";
    /// Whether this process uses a cache server: 1 or 0, by server.
    pub const SHARED_CACHE_SERVER_UP: &str = "curt_shared_cache_server_up";
    /// Bytes that a cache server holds, by server.
    pub const SHARED_CACHE_BYTES: &str = "curt_shared_cache_bytes";
    /// Bytes that a cache server may hold, by server; 0 without a limit.
    pub const SHARED_CACHE_BYTES_MAX: &str = "curt_shared_cache_max_bytes";
    /// Changes of links that other processes were to be told, by result: `sent`, `failed`, `dropped`.
    pub const INVALIDATIONS_PUBLISHED: &str = "curt_invalidations_published";
    /// Changes of links that the channel told, those of this process too.
    pub const INVALIDATIONS_RECEIVED: &str = "curt_invalidations_received";
    /// Times that all copies were dropped because changes may have been missed.
    pub const INVALIDATION_GAPS: &str = "curt_invalidation_gaps";
    /// Whether changes that others make reach this process: 1 or 0.
    pub const INVALIDATIONS_UP: &str = "curt_invalidations_up";
    /// Keys by stage: `minted`, `recycled`, `free`, `open`, `in_transit`, `pooled`, `buffered`, `used`, `quarantined`,
    /// `duplicated`, `leaked` (K-2).
    pub const KEYS: &str = "curt_keys";
    /// Keys that are found more often than they were made, confirmed over several looks (K-2).
    pub const KEYS_UNBALANCED: &str = "curt_keys_unbalanced";
    /// Keys that this process holds, by stage: `buffered`, `in_transit`.
    pub const KEYS_HELD: &str = "curt_keys_held";
    /// Free keys in each shard of the keys database.
    pub const KEY_LEDGER_FREE: &str = "curt_key_ledger_free";
    /// Keys waiting in each shard of the pool.
    pub const KEY_POOL_DEPTH: &str = "curt_key_pool_depth";
    /// Keys that met an existing link at insert.
    pub const KEY_CONFLICTS: &str = "curt_key_conflicts";
    /// Minted keys that the ledger already held.
    pub const KEY_DUPLICATES: &str = "curt_key_duplicates";
    /// Keys made on the spot because the supply was dry.
    pub const KEY_FALLBACKS: &str = "curt_key_fallbacks";
    /// Keys of the supply that no link got, by reason: `length`, `alphabet`, `reserved`, `unwanted`.
    pub const KEYS_REFUSED: &str = "curt_keys_refused";
    /// Keys found in batches of a process that died, and put back.
    pub const KEYS_RECOVERED: &str = "curt_keys_recovered";
    /// Keys put back into the supply after their quarantine.
    pub const KEYS_RECYCLED: &str = "curt_keys_recycled";
    /// Blocks of a key file that were skipped because they are damaged.
    pub const KEY_BLOCKS_CORRUPT: &str = "curt_key_blocks_corrupt";
    /// Records of the click stream that a producer sent again, and that were left out.
    pub const STREAM_REPEATED: &str = "curt_stream_repeated";
    /// Records of the click stream that retention removed before they were counted.
    pub const STREAM_LOST: &str = "curt_stream_lost";
    /// Records of the click stream that cannot be read, by reason: `json`, `version`, `range` and those of the spool.
    pub const STREAM_DEAD_LETTERS: &str = "curt_stream_dead_letters";
    /// Clicks that were forwarded from the spool to the click stream.
    pub const CLICKS_FORWARDED: &str = "curt_clicks_forwarded";
    /// Age of the oldest click in the spool that the click stream does not have, in seconds.
    pub const FORWARD_LAG: &str = "curt_forward_lag_seconds";
    /// Clicks written to the spool.
    pub const CLICKS_CAPTURED: &str = "curt_clicks_captured";
    /// Clicks that found no room in the spool, by reason: `late`, `full`, `disk`.
    pub const CLICKS_DROPPED: &str = "curt_clicks_dropped";
    /// Click records that cannot be read, by reason: `checksum`, `hole`, `torn`, `segment` in the spool; `version`,
    /// `short`, `range`, `long` in the record.
    pub const CLICK_DEAD_LETTERS: &str = "curt_click_dead_letters";
    /// Clicks counted in the store, of every kind.
    pub const CLICKS_COUNTED: &str = "curt_clicks_counted";
    /// Single clicks that were removed because all of them took more than `clicks.retention_size`.
    pub const CLICKS_TRIMMED: &str = "curt_clicks_trimmed";
    /// Single clicks that were counted and not kept because the disk had too little room.
    pub const CLICKS_SKIPPED: &str = "curt_clicks_skipped";
    /// Whether clicks are counted: 1, or 0 while something stops it.
    pub const CLICKS_COUNTING: &str = "curt_clicks_counting";
    /// Age of the oldest click in the spool that no consumer has read, in seconds.
    pub const CLICKS_LAG: &str = "curt_clicks_lag_seconds";
    /// Days of subjects and single clicks that damage to the clicks database cost, by what.
    pub const CLICKS_DAMAGED: &str = "curt_clicks_damaged";
    /// Whether the clock is trusted to purge by: 1, or 0 after a jump.
    pub const CLOCK_TRUSTED: &str = "curt_clock_trusted";
    /// Writes of click counts, by result: `applied`, `refused`, `failed`.
    pub const CLICK_FLUSHES: &str = "curt_click_flushes";
    /// Time to write click counts, seconds.
    pub const CLICK_FLUSH_SECONDS: &str = "curt_click_flush_seconds";
    /// Bytes that the spool's files take.
    pub const SPOOL_BYTES: &str = "curt_spool_bytes";
    /// Failed calls of an engine, by backend, operation and kind.
    pub const STORE_ERRORS: &str = "curt_store_errors";
    /// Look-ups of links where replicas are read, by host and role: `leader`, `replica`.
    pub const STORE_READS: &str = "curt_store_reads";
    /// How old at most is what a replica shows, in seconds, by host.
    pub const REPLICA_LAG_SECONDS: &str = "curt_replica_lag_seconds";
    /// Whether a node of the links database takes writes: 1 or 0, by node.
    pub const LINKS_NODE_UP: &str = "curt_links_node_up";
    /// Version of the shard map that calls are routed by; 0 before it is known.
    pub const SHARD_MAP_VERSION: &str = "curt_shard_map_version";
    /// Bytes of the files of embedded databases, by database (`links`, `clicks`, …) and file: `data`, `wal`.
    pub const DATABASE_BYTES: &str = "curt_database_bytes";
    /// Requests that a setting of `[limits]` refused, by limit: `create`, `redirect`, `miss`, `sign-in`, `sign-up`,
    /// `password`, `link-password`, `password-link`.
    pub const LIMIT_REFUSALS: &str = "curt_limit_refusals";
    /// Whether limits are counted by this process alone, because the engine of `store.quotas` is away: 1 or 0.
    pub const QUOTAS_DEGRADED: &str = "curt_quotas_degraded";
    /// Questions about limits that this process answered by its own count because the engine was away.
    pub const QUOTA_FALLBACKS: &str = "curt_quota_fallbacks";
    /// Sign-ins and password checks of users that failed.
    pub const SIGN_IN_FAILURES: &str = "curt_sign_in_failures";
    /// Expired links that the last look of the purge found, `purge.batch` at most; 0 when none is left.
    pub const PURGE_BACKLOG: &str = "curt_purge_backlog";
    /// Lines of the access log that were not written because it could not keep up.
    pub const ACCESS_LOG_DROPPED: &str = "curt_access_log_dropped";
    /// What runs: version, and the version of SQLite.
    pub const BUILD: &str = "curt_build";
    /// CPU time that the process has used, seconds.
    pub const PROCESS_CPU_SECONDS: &str = "process_cpu_seconds";
    /// Memory that the process holds, bytes.
    pub const PROCESS_RESIDENT_BYTES: &str = "process_resident_memory_bytes";
    /// Address space of the process, bytes.
    pub const PROCESS_VIRTUAL_BYTES: &str = "process_virtual_memory_bytes";
    /// Files and sockets that the process has open.
    pub const PROCESS_OPEN_FDS: &str = "process_open_fds";
    /// How many it may have open.
    pub const PROCESS_MAX_FDS: &str = "process_max_fds";
    /// Threads of the process.
    pub const PROCESS_THREADS: &str = "process_threads";
    /// When the process was started, seconds since 1970.
    pub const PROCESS_START_SECONDS: &str = "process_start_time_seconds";
}

/// Log events: the `event` field of a structured log line. Noun, then past verb.
pub mod event {
    /// All roles run; `addresses` says where they listen.
    pub const SERVER_STARTED: &str = "server_started";
    /// The process ends by itself, after a drain.
    pub const SERVER_STOPPED: &str = "server_stopped";
    /// A phase of the shutdown ended, with the time that it took.
    pub const SHUTDOWN_PHASE_REACHED: &str = "shutdown_phase_reached";
    /// A health check passed or failed that had the other result before.
    pub const HEALTH_CHANGED: &str = "health_changed";
    /// A background task, a worker or a listener ended with an error.
    pub const TASK_FAILED: &str = "task_failed";
    /// A background task did not stop within the grace of the shutdown.
    pub const TASK_ABANDONED: &str = "task_abandoned";
    /// An engine refused a call or did not answer; `backend` names it.
    pub const STORE_FAILED: &str = "store_failed";
    /// An engine answers again after failures.
    pub const STORE_RECOVERED: &str = "store_recovered";
    /// The process started without an engine, and goes on asking for it.
    pub const ENGINE_AWAITED: &str = "engine_awaited";
    /// A migration brought a schema up to date.
    pub const MIGRATION_APPLIED: &str = "migration_applied";
    /// The process refuses writes from now on, or takes them again.
    pub const READ_ONLY_CHANGED: &str = "read_only_changed";
    /// The process goes by a newer shard map.
    pub const SHARD_MAP_CHANGED: &str = "shard_map_changed";
    /// The shard map cannot be read, and the last one stays in force.
    pub const SHARD_MAP_UNREADABLE: &str = "shard_map_unreadable";
    /// The first shard map was made.
    pub const SHARD_MAP_FOUNDED: &str = "shard_map_founded";
    /// A switch of a shard to another node was ended for a mover that died.
    pub const SHARD_SWITCH_ENDED: &str = "shard_switch_ended";
    /// The engine that limits are counted in is away: each process counts for itself.
    pub const QUOTAS_DEGRADED: &str = "quotas_degraded";
    /// Limits are counted by all processes together again.
    pub const QUOTAS_RECOVERED: &str = "quotas_recovered";
    /// A cache server failed too often, or missed an invalidation, and is not used.
    pub const CACHE_SERVER_LEFT: &str = "cache_server_left";
    /// A cache server that was not used was cleared, and is used again.
    pub const CACHE_SERVER_RETURNED: &str = "cache_server_returned";
    /// Changes of links could not be told to other processes, whose copies end by their age.
    pub const INVALIDATIONS_FAILED: &str = "invalidations_failed";
    /// Changes of links are told again after `invalidations_failed`.
    pub const INVALIDATIONS_RECOVERED: &str = "invalidations_recovered";
    /// Changes of links may have been missed, and all copies were dropped.
    pub const INVALIDATIONS_MISSED: &str = "invalidations_missed";
    /// The channel of invalidations does not answer, and copies live for a shorter time.
    pub const INVALIDATIONS_SILENT: &str = "invalidations_silent";
    /// Keys were minted into a ledger shard, or rows seeded.
    pub const KEYS_MINTED: &str = "keys_minted";
    /// More keys were found than were made, in several looks (K-2).
    pub const KEYS_UNBALANCED: &str = "keys_unbalanced";
    /// The keys add up again after `keys_unbalanced`.
    pub const KEYS_BALANCED: &str = "keys_balanced";
    /// A keysync moved keys from the ledger to a pool shard.
    pub const KEYS_MOVED: &str = "keys_moved";
    /// Unused keys of this process went back to the supply.
    pub const KEYS_RETURNED: &str = "keys_returned";
    /// Unused keys of a process that died went back to the supply.
    pub const KEYS_RECOVERED: &str = "keys_recovered";
    /// The ledger refused a lease holder that was replaced.
    pub const KEY_OWNER_REFUSED: &str = "key_owner_refused";
    /// The supply is dry: new links get random keys.
    pub const KEY_SUPPLY_DRIED: &str = "key_supply_dried";
    /// The supply gives keys again.
    pub const KEY_SUPPLY_REFILLED: &str = "key_supply_refilled";
    /// Progress of a key file that is being written.
    pub const KEY_FILE_GREW: &str = "key_file_grew";
    /// A key file is complete and may be read.
    pub const KEY_FILE_PUBLISHED: &str = "key_file_published";
    /// Key files run out and no new one was written.
    pub const KEY_FILES_LOW: &str = "key_files_low";
    /// A damaged block of a key file was skipped.
    pub const KEY_BLOCK_SKIPPED: &str = "key_block_skipped";
    /// A key of the supply breaks the rules for keys and was dropped.
    pub const KEY_REFUSED: &str = "key_refused";
    /// A pool held something that is no key.
    pub const FOREIGN_KEY_DROPPED: &str = "foreign_key_dropped";
    /// Expired links were purged.
    pub const LINKS_PURGED: &str = "links_purged";
    /// The blocklist was read again after a change.
    pub const BLOCKLIST_LOADED: &str = "blocklist_loaded";
    /// The blocklist cannot be read; the one before stays in force.
    pub const BLOCKLIST_REFUSED: &str = "blocklist_refused";
    /// A file that clicks are read by was read again after a change; `setting` names it.
    pub const REFERENCE_LOADED: &str = "reference_loaded";
    /// A file that clicks are read by cannot be used; the one before stays in force.
    pub const REFERENCE_REFUSED: &str = "reference_refused";
    /// The spool holds clicks of an earlier run, which are counted now.
    pub const SPOOL_RECOVERED: &str = "spool_recovered";
    /// The spool has no further segment: clicks are dropped and counted as dropped.
    pub const SPOOL_FULL: &str = "spool_full";
    /// The spool has a next segment again.
    pub const SPOOL_FULL_ENDED: &str = "spool_full_ended";
    /// The spool cannot keep its id on disk.
    pub const SPOOL_UNNAMED: &str = "spool_unnamed";
    /// The group of consumers has given this process other partitions of the click stream.
    pub const STREAM_ASSIGNED: &str = "stream_assigned";
    /// Retention removed records of the click stream before they were counted.
    pub const STREAM_LOST: &str = "stream_lost";
    /// The click stream takes no clicks, or takes them again.
    pub const CLICK_FORWARDING_CHANGED: &str = "click_forwarding_changed";
    /// A click record cannot be read and is among the dead letters.
    pub const CLICK_DEAD_LETTERED: &str = "click_dead_lettered";
    /// Another process counts the same clicks; this one gives way.
    pub const CLICK_FLUSH_REFUSED: &str = "click_flush_refused";
    /// Single clicks or counts past their retention were removed.
    pub const CLICKS_PURGED: &str = "clicks_purged";
    /// A connection to an engine on another machine is plain text.
    pub const ENCRYPTION_LACKED: &str = "encryption_lacked";
    /// Stored counts are damaged; new ones are kept apart from them.
    pub const CLICKS_SET_ASIDE: &str = "clicks_set_aside";
    /// Counting stopped, went on, or keeps single clicks again or no longer.
    pub const CLICK_COUNTING_CHANGED: &str = "click_counting_changed";
    /// Clicks were dropped because the next spool segment was not ready.
    pub const CLICKS_LATE: &str = "clicks_late";
    /// The clock is not trusted to purge by, or is again.
    pub const CLOCK_JUMPED: &str = "clock_jumped";
    /// Files of the data folder were open to other users.
    pub const FILES_TIGHTENED: &str = "files_tightened";
    /// A request was answered; a redirect only in the access log.
    pub const REQUEST_ANSWERED: &str = "request_answered";
    /// The access log cannot be written.
    pub const ACCESS_LOG_FAILED: &str = "access_log_failed";
    /// A request failed for a reason of ours: a store, a panic, load.
    pub const REQUEST_FAILED: &str = "request_failed";
    /// Connections cannot be accepted for now.
    pub const CONNECTION_FAILED: &str = "connection_failed";
}

/// Actions in the audit log.
pub mod audit {
    pub const SETUP_DONE: &str = "setup_done";
    pub const SIGNED_UP: &str = "signed_up";
    pub const SIGNED_IN: &str = "signed_in";
    pub const SIGN_IN_FAILED: &str = "sign_in_failed";
    pub const SIGNED_OUT: &str = "signed_out";
    pub const SESSION_ENDED: &str = "session_ended";
    pub const PASSWORD_CHANGED: &str = "password_changed";
    pub const USER_ADDED: &str = "user_added";
    pub const USER_CHANGED: &str = "user_changed";
    pub const USER_DISABLED: &str = "user_disabled";
    pub const USER_ENABLED: &str = "user_enabled";
    pub const USER_REMOVED: &str = "user_removed";
    pub const INVITED: &str = "invited";
    pub const INVITE_REVOKED: &str = "invite_revoked";
    pub const API_KEY_ADDED: &str = "api_key_added";
    pub const API_KEY_ROTATED: &str = "api_key_rotated";
    pub const API_KEY_REVOKED: &str = "api_key_revoked";
    pub const PERMISSION_GRANTED: &str = "permission_granted";
    pub const PERMISSION_REVOKED: &str = "permission_revoked";
    pub const LINK_DISABLED: &str = "link_disabled";
    pub const LINK_ENABLED: &str = "link_enabled";
    pub const LINKS_CHANGED: &str = "links_changed";
    pub const LINKS_DELETED: &str = "links_deleted";
    pub const TAG_REPLACED: &str = "tag_replaced";
    pub const VISIBILITY_CHANGED: &str = "visibility_changed";
    pub const CLICKS_ERASED: &str = "clicks_erased";
}
