//! Every bound of the product in one place, with the relations between them checked at compile time.

use std::time::Duration;

/// Longest key or alias, in bytes.
pub const KEY_BYTES_MAX: usize = 64;
/// Shortest generated key: shorter ones are guessed too easily and collide too often.
pub const GENERATED_KEY_BYTES_MIN: usize = 4;
/// Longest generated key.
pub const GENERATED_KEY_BYTES_MAX: usize = 22;
/// Shortest word that an operator may keep out of keys: shorter ones are in too many.
pub const UNWANTED_WORD_BYTES_MIN: usize = 3;
/// Most such words.
pub const UNWANTED_WORDS_MAX: usize = 10_000;
/// Longest target that any configuration may allow; proxies cut longer `Location` lines.
pub const TARGET_BYTES_MAX: usize = 8_192;
/// Longest target unless the configuration says otherwise.
pub const TARGET_BYTES_DEFAULT: usize = 2_048;
/// Longest title, in bytes.
pub const TITLE_BYTES_MAX: usize = 512;
/// Most tags on one link.
pub const TAGS_MAX: usize = 32;
/// Longest tag, in bytes.
pub const TAG_BYTES_MAX: usize = 64;

/// Most clicks that a link may be limited to; beyond it a limit is none.
pub const CLICKS_MAX: u64 = 1_000_000_000;

/// Most links in one bulk request.
pub const BULK_LINKS_MAX: usize = 1_000;
/// Most links that one request changes; so many of the longest keys fit into a body.
pub const BULK_CHANGES_MAX: usize = 500;
/// Most links on one page of a list.
pub const PAGE_LINKS_MAX: usize = 200;
/// Most rows that a store reads to fill one page; a search that finds little pages on instead of scanning all.
pub const PAGE_ROWS_SCANNED_MAX: usize = 50_000;
/// Longest search text, in bytes.
pub const SEARCH_BYTES_MAX: usize = 200;
/// Longest `Idempotency-Key`, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// How long the answer to an `Idempotency-Key` is remembered.
pub const IDEMPOTENCY_KEPT: Duration = Duration::from_secs(24 * 3_600);

/// Keys that one batch moves from the ledger to the pool.
pub const KEY_BATCH_MAX: usize = 1_000;
/// Generated keys tried for one link before the create fails.
pub const KEY_TRIES_MAX: usize = 8;
/// Links that one purge batch touches.
pub const PURGE_BATCH_MAX: usize = 1_000;
/// Creates that share one transaction at most.
pub const COMMIT_GROUP_MAX: usize = 4_096;

/// Largest file of blocked targets, in bytes.
pub const BLOCKLIST_BYTES_MAX: u64 = 16 * 1_024 * 1_024;
/// Longest line of it, in bytes.
pub const BLOCKLIST_LINE_BYTES_MAX: usize = 1_024;
/// Most patterns in it; hosts are bounded by the file's size alone.
pub const BLOCKLIST_PATTERNS_MAX: usize = 1_000;

/// Logical shards between keys and nodes.
pub const LOGICAL_SHARDS: u16 = 1_024;

/// Request line and headers together, in bytes.
pub const HTTP_HEAD_BYTES_MAX: usize = 16 * 1_024;
/// Path and query of one request, in bytes: room for the longest target in a query, encoded.
pub const HTTP_URI_BYTES_MAX: usize = 12 * 1_024;
/// Header fields of one request.
pub const HTTP_HEADERS_MAX: usize = 64;
/// Body of an ordinary request, in bytes.
pub const HTTP_BODY_BYTES_MAX: usize = 64 * 1_024;
/// Body of a bulk request, in bytes.
pub const HTTP_BULK_BODY_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Longest name of an API key or of a person, in bytes.
pub const NAME_BYTES_MAX: usize = 100;
/// Longest email address, in bytes (RFC 5321).
pub const EMAIL_BYTES_MAX: usize = 254;
/// Shortest password, in characters.
pub const PASSWORD_CHARS_MIN: usize = 8;
/// Longest password, in bytes: long enough for any phrase, short enough to hash.
pub const PASSWORD_BYTES_MAX: usize = 256;
/// Longest description of a browser that a session keeps, in bytes.
pub const AGENT_BYTES_MAX: usize = 200;
/// Most API keys in force per user.
pub const API_KEYS_PER_USER_MAX: usize = 100;
/// Most sessions per user; signing in once more ends the oldest.
pub const SESSIONS_PER_USER_MAX: usize = 50;
/// Most permissions for one link.
pub const PERMISSIONS_PER_LINK_MAX: usize = 1_000;
/// Most users, audit entries or permissions on one page.
pub const PAGE_ACCOUNTS_MAX: usize = 200;
/// Most invitations in a list: those that end first.
pub const INVITES_LISTED_MAX: usize = 100;

/// Values of one dimension that are counted apart for one subject on one day; the others share the value "other".
pub const VALUES_PER_DAY_MAX: usize = 1_000;
/// Longest value that is counted, in bytes; longer ones are cut.
pub const VALUE_BYTES_MAX: usize = 255;
/// Most clicks on one page.
pub const PAGE_CLICKS_MAX: usize = 1_000;
/// Different values that a ranking of single clicks counts apart: what it may hold in memory.
pub const VALUES_RANKED_MAX: usize = 100_000;
/// Longest range of a report, in years.
pub const REPORT_YEARS_MAX: u64 = 10;
/// Most points in one series of a report.
pub const REPORT_POINTS_MAX: usize = 5_000;
/// Most values that are ranked in one report.
pub const REPORT_VALUES_MAX: usize = 1_000;
/// How long a live feed lasts at most.
pub const LIVE_FEED_LASTS_MAX: Duration = Duration::from_secs(3_600);
/// How long after its last event a live feed can be gone on with.
pub const LIVE_FEED_RESUMES_WITHIN: Duration = Duration::from_secs(24 * 3_600);

const _: () = assert!(GENERATED_KEY_BYTES_MIN < GENERATED_KEY_BYTES_MAX);
const _: () = assert!(GENERATED_KEY_BYTES_MAX <= KEY_BYTES_MAX);
const _: () = assert!(TARGET_BYTES_DEFAULT <= TARGET_BYTES_MAX);
const _: () = assert!(TARGET_BYTES_MAX * 2 <= HTTP_BODY_BYTES_MAX);
const _: () = assert!(TARGET_BYTES_MAX < HTTP_URI_BYTES_MAX);
const _: () = assert!(BULK_CHANGES_MAX * (KEY_BYTES_MAX + 8) < HTTP_BODY_BYTES_MAX);
const _: () = assert!(HTTP_URI_BYTES_MAX < HTTP_HEAD_BYTES_MAX);
const _: () = assert!(PAGE_LINKS_MAX < PAGE_ROWS_SCANNED_MAX);
const _: () = assert!(PAGE_CLICKS_MAX < PAGE_ROWS_SCANNED_MAX);
const _: () = assert!(BULK_LINKS_MAX <= COMMIT_GROUP_MAX);
const _: () = assert!(BULK_LINKS_MAX * TARGET_BYTES_DEFAULT < HTTP_BULK_BODY_BYTES_MAX);
