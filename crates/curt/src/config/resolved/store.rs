use std::path::Path;

use curt_core::ports::LedgerForm;
use curt_keys::Strategy;

use crate::config::ConfigError;
use crate::config::check::at;
use crate::config::raw::Raw;
use crate::wiring::{EngineAddress, EngineKind, EngineTuning, Part};

/// Which engine serves what.
#[derive(Debug)]
pub(crate) struct StoreSettings {
    pub(crate) links: EngineAddress,
    pub(crate) accounts: EngineAddress,
    pub(crate) clicks: EngineAddress,
    pub(crate) stream: EngineAddress,
    pub(crate) quotas: EngineAddress,
    /// Shards of the keys database; never empty.
    pub(crate) keys: Vec<EngineAddress>,
    pub(crate) keys_form: LedgerForm,
    /// Shards of the pool. Empty: servers draw straight from the keys database.
    pub(crate) pool: Vec<EngineAddress>,
    pub(crate) files: EngineAddress,
    pub(crate) leases: EngineAddress,
    /// `None`: the links database.
    pub(crate) cursor: Option<EngineAddress>,
    pub(crate) tuning: EngineTuning,
}

impl StoreSettings {
    /// Every address with what it is for.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (Part, &EngineAddress)> {
        [
            (Part::Links, &self.links),
            (Part::Accounts, &self.accounts),
            (Part::Clicks, &self.clicks),
            (Part::Stream, &self.stream),
            (Part::Quotas, &self.quotas),
            (Part::Leases, &self.leases),
            (Part::Files, &self.files),
        ]
        .into_iter()
        .chain(self.keys.iter().map(|shard| (Part::Keys, shard)))
        .chain(self.pool.iter().map(|shard| (Part::Pool, shard)))
        .chain(self.cursor.iter().map(|cursor| (Part::Cursor, cursor)))
    }
}

pub(super) fn resolve(
    raw: &Raw,
    data_dir: &Path,
    strategy: Strategy,
) -> Result<StoreSettings, ConfigError> {
    let written = &raw.store;
    let parse =
        |part: Part, text: &str| at(part.setting(), EngineAddress::parse(text, part, data_dir));
    let parse_or = |part, text: &str, default: &EngineAddress| match text {
        "" => Ok(default.clone()),
        text => parse(part, text),
    };
    let parse_all = |part, texts: &[String]| -> Result<Vec<_>, ConfigError> {
        texts.iter().map(|text| parse(part, text)).collect()
    };
    let links = match parse_all(Part::Links, &written.links)?.as_slice() {
        [links] => links.clone(),
        shards => {
            let why = format!(
                "{} addresses: this version keeps links in one database; shards come later",
                shards.len()
            );
            return at("store.links", Err(why));
        }
    };
    let accounts = parse_or(Part::Accounts, &written.accounts, &links)?;
    let clicks = parse_or(Part::Clicks, &written.clicks, &clicks_beside(&links))?;
    if !written.cache.is_empty() {
        parse(Part::Cache, &written.cache)?;
    }
    let mut keys = parse_all(Part::Keys, &written.keys)?;
    if keys.is_empty() {
        keys.push(keys_beside(&links, data_dir));
    }
    let cursor = Some(written.cursor.as_str()).filter(|text| !text.is_empty());
    let cursor = cursor.map(|text| parse(Part::Cursor, text)).transpose()?;
    let others = [&links, &accounts].into_iter().chain(&keys).chain(&cursor);
    check_clicks(&clicks, others)?;
    Ok(StoreSettings {
        stream: parse(Part::Stream, &written.stream)?,
        quotas: parse(Part::Quotas, &written.quotas)?,
        pool: parse_all(Part::Pool, &written.pool)?,
        files: parse(Part::Files, &written.files)?,
        leases: parse(Part::Leases, &written.leases)?,
        keys_form: keys_form(&written.keys_form, strategy, &keys)?,
        tuning: EngineTuning::resolve(raw)?,
        links,
        accounts,
        clicks,
        keys,
        cursor,
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

/// Name of the keys database's file where the links database cannot be one.
const KEYS_FILE: &str = "keys.db";

/// Where minted keys are kept unless the configuration says otherwise.
fn keys_beside(links: &EngineAddress, data_dir: &Path) -> EngineAddress {
    match links.kind() {
        EngineKind::Cassandra => EngineAddress::sqlite(data_dir.join(KEYS_FILE)),
        _ => links.clone(),
    }
}

/// A file has one writer, and clicks need one that nothing else waits for.
fn check_clicks<'a>(
    clicks: &EngineAddress,
    mut others: impl Iterator<Item = &'a EngineAddress>,
) -> Result<(), ConfigError> {
    if clicks.kind() == EngineKind::Sqlite && others.any(|other| other == clicks) {
        let why =
            format!("{clicks} holds links, accounts or keys; clicks need a file of their own");
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
