use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use curt_core::ports::LedgerForm;
use curt_keys::Strategy;
use curt_sqlite::SqliteSettings;

use super::{at, positive, sqlite, within};
use crate::config::raw::{self, Raw};
use crate::config::{ConfigError, units};
use crate::wiring::{EngineAddress, EngineKind, Part};

/// Which engine serves what.
#[derive(Debug)]
pub(crate) struct StoreSettings {
    pub(crate) links: EngineAddress,
    pub(crate) clicks: EngineAddress,
    /// Shards of the keys database; never empty.
    pub(crate) keys: Vec<EngineAddress>,
    pub(crate) keys_form: LedgerForm,
    /// Shards of the pool. Empty: servers draw straight from the keys database.
    pub(crate) pool: Vec<EngineAddress>,
    pub(crate) files: EngineAddress,
    pub(crate) leases: EngineAddress,
    /// `None`: the links database.
    pub(crate) cursor: Option<EngineAddress>,
    pub(crate) sqlite: SqliteSettings,
    pub(crate) postgres: PostgresConfig,
}

/// How PostgreSQL is used, whether or not it is in this build.
#[derive(Clone, Debug)]
pub(crate) struct PostgresConfig {
    pub(crate) lookup_connections: NonZeroUsize,
    pub(crate) write_connections: NonZeroUsize,
    pub(crate) background_connections: NonZeroUsize,
    pub(crate) lookup_timeout: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) background_timeout: Duration,
    pub(crate) flush_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) standby_after: Option<Duration>,
}

impl StoreSettings {
    /// Every address with the setting that it is from.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (&'static str, &EngineAddress)> {
        [("store.links", &self.links), ("store.clicks", &self.clicks)]
            .into_iter()
            .chain(self.keys.iter().map(|shard| ("store.keys", shard)))
            .chain(self.pool.iter().map(|shard| ("store.pool", shard)))
            .chain([("store.leases", &self.leases), ("store.files", &self.files)])
            .chain(self.cursor.iter().map(|cursor| ("store.cursor", cursor)))
    }
}

pub(super) fn resolve(
    raw: &Raw,
    data_dir: &Path,
    strategy: Strategy,
) -> Result<StoreSettings, ConfigError> {
    let written = &raw.store;
    let parse = |key: &str, part, text: &str| at(key, EngineAddress::parse(text, part, data_dir));
    let links = parse("store.links", Part::Links, &written.links)?;
    let mut keys = Vec::new();
    for text in &written.keys {
        keys.push(parse("store.keys", Part::Keys, text)?);
    }
    if keys.is_empty() {
        keys.push(links.clone());
    }
    let mut pool = Vec::new();
    for text in &written.pool {
        pool.push(parse("store.pool", Part::Pool, text)?);
    }
    let keys_form = keys_form(&written.keys_form, strategy, &keys)?;
    let cursor = match written.cursor.as_str() {
        "" => None,
        text => Some(parse("store.cursor", Part::Cursor, text)?),
    };
    let clicks = match written.clicks.as_str() {
        "" => clicks_beside(&links),
        text => parse("store.clicks", Part::Clicks, text)?,
    };
    check_clicks(&clicks, [&links].into_iter().chain(&keys).chain(&cursor))?;
    Ok(StoreSettings {
        files: parse("store.files", Part::Files, &written.files)?,
        leases: parse("store.leases", Part::Leases, &written.leases)?,
        sqlite: sqlite(&raw.sqlite)?,
        postgres: postgres(&raw.postgres)?,
        links,
        clicks,
        keys,
        keys_form,
        pool,
        cursor,
    })
}

fn postgres(raw: &raw::Postgres) -> Result<PostgresConfig, ConfigError> {
    let connections = |key, count| {
        let count = within(key, count, 1, 1_000)?;
        Ok(NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN))
    };
    let standby_after = units::duration_or_never(&raw.standby_after);
    Ok(PostgresConfig {
        lookup_connections: connections("postgres.lookup_connections", raw.lookup_connections)?,
        write_connections: connections("postgres.write_connections", raw.write_connections)?,
        background_connections: connections(
            "postgres.background_connections",
            raw.background_connections,
        )?,
        lookup_timeout: positive("postgres.lookup_timeout", &raw.lookup_timeout)?,
        write_timeout: positive("postgres.write_timeout", &raw.write_timeout)?,
        background_timeout: positive("postgres.background_timeout", &raw.background_timeout)?,
        flush_timeout: positive("postgres.flush_timeout", &raw.flush_timeout)?,
        connect_timeout: positive("postgres.connect_timeout", &raw.connect_timeout)?,
        standby_after: at("postgres.standby_after", standby_after)?,
    })
}

/// Name of the clicks database's file where none is chosen.
const CLICKS_FILE: &str = "clicks.db";

/// Where clicks are counted unless the configuration says otherwise.
fn clicks_beside(links: &EngineAddress) -> EngineAddress {
    match links.kind() {
        EngineKind::Sqlite => EngineAddress::sqlite(links.path().with_file_name(CLICKS_FILE)),
        _ => links.clone(),
    }
}

/// A file has one writer, and clicks need one that nothing else waits for.
fn check_clicks<'a>(
    clicks: &EngineAddress,
    mut others: impl Iterator<Item = &'a EngineAddress>,
) -> Result<(), ConfigError> {
    if clicks.kind() == EngineKind::Sqlite && others.any(|other| other == clicks) {
        let why = format!("{clicks} holds links or keys; clicks need a file of their own");
        return at("store.clicks", Err(why));
    }
    Ok(())
}

fn keys_form(
    text: &str,
    strategy: Strategy,
    keys: &[EngineAddress],
) -> Result<LedgerForm, ConfigError> {
    let key = "store.keys_form";
    let form = match (text, strategy) {
        ("delete", Strategy::Status) | ("status", _) => LedgerForm::Status,
        ("delete", _) => LedgerForm::Delete,
        ("used-table", _) => LedgerForm::UsedTable,
        ("cursor", _) => LedgerForm::Cursor,
        (other, _) => {
            let known = format!("{other:?}: use delete, status, used-table or cursor");
            return at(key, Err(known));
        }
    };
    let has_cursors = |shard: &EngineAddress| shard.kind() == EngineKind::Postgres;
    if form == LedgerForm::Cursor && !keys.iter().all(has_cursors) {
        let why = "the form \"cursor\" is PostgreSQL's: use delete, status or used-table";
        return at(key, Err(why.to_owned()));
    }
    Ok(form)
}
