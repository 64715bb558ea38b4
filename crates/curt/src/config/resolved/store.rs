use std::path::Path;
use std::time::Duration;

use curt_core::Placement;
use curt_core::limits::LOGICAL_SHARDS;
use curt_core::ports::LedgerForm;
use curt_keys::Strategy;

use crate::config::ConfigError;
use crate::config::check::{at, positive, within};
use crate::config::raw::{self, Raw};
use crate::wiring::{EngineAddress, EngineKind, EngineTuning, Part};

/// Which engine serves what.
#[derive(Debug)]
pub(crate) struct StoreSettings {
    /// The first node of the links database, and the only one where there is one.
    pub(crate) links: EngineAddress,
    /// All nodes of it, in the order of the shard map; never empty, and all of one engine.
    pub(crate) links_nodes: Vec<EngineAddress>,
    pub(crate) shard_map: EngineAddress,
    pub(crate) placement: Placement,
    /// Links that a move of a shard copies in a second at most; 0: no limit.
    pub(crate) move_rate: u64,
    pub(crate) accounts: EngineAddress,
    pub(crate) clicks: EngineAddress,
    pub(crate) stream: EngineAddress,
    /// `None`: consumers aggregate in their memory.
    pub(crate) counters: Option<EngineAddress>,
    /// Servers of the cache that processes share; empty without one.
    pub(crate) cache: Vec<EngineAddress>,
    /// `None`: processes tell each other nothing.
    pub(crate) invalidations: Option<EngineAddress>,
    pub(crate) quotas: EngineAddress,
    /// How long a request waits for them.
    pub(crate) quotas_timeout: Duration,
    /// Shards of the keys database; never empty.
    pub(crate) keys: Vec<EngineAddress>,
    pub(crate) keys_form: LedgerForm,
    /// Shards of the pool. Empty: servers draw straight from the keys database.
    pub(crate) pool: Vec<EngineAddress>,
    pub(crate) files: EngineAddress,
    pub(crate) leases: EngineAddress,
    /// `None`: the links database.
    pub(crate) cursor: Option<EngineAddress>,
    /// Where this process is.
    pub(crate) region: Option<Box<str>>,
    pub(crate) tuning: EngineTuning,
}

impl StoreSettings {
    /// Every address with what it is for.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (Part, &EngineAddress)> {
        let nodes = self.links_nodes.iter().map(|node| (Part::Links, node));
        let map = self
            .is_sharded()
            .then_some((Part::ShardMap, &self.shard_map));
        nodes
            .chain(map)
            .chain([
                (Part::Accounts, &self.accounts),
                (Part::Clicks, &self.clicks),
                (Part::Stream, &self.stream),
                (Part::Quotas, &self.quotas),
                (Part::Leases, &self.leases),
                (Part::Files, &self.files),
            ])
            .chain(self.keys.iter().map(|shard| (Part::Keys, shard)))
            .chain(self.cache.iter().map(|server| (Part::Cache, server)))
            .chain(self.pool.iter().map(|shard| (Part::Pool, shard)))
            .chain(self.counters.iter().map(|store| (Part::Counters, store)))
            .chain(self.cursor.iter().map(|cursor| (Part::Cursor, cursor)))
            .chain(
                self.invalidations
                    .iter()
                    .map(|channel| (Part::Invalidations, channel)),
            )
    }

    /// Whether links are spread over several nodes.
    /// Whether the only links database may in truth be one of several nodes, which its map would tell.
    pub(crate) fn may_be_lone_node(&self) -> bool {
        let kind = self.shard_map.kind();
        let has_map = kind.serves(Part::ShardMap) && !self.shard_map.spreads_by_itself();
        !self.is_sharded() && kind != EngineKind::Memory && has_map
    }

    pub(crate) fn is_sharded(&self) -> bool {
        self.links_nodes.len() > 1
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
    let links_nodes = parse_all(Part::Links, &written.links)?;
    let links = at("store.links", check_nodes(&links_nodes))?.clone();
    let shard_map = parse_or(Part::ShardMap, &written.shard_map, &links)?;
    let accounts = parse_or(Part::Accounts, &written.accounts, &links)?;
    let clicks = parse_or(Part::Clicks, &written.clicks, &clicks_beside(&links))?;
    let cache = parse_all(Part::Cache, &written.cache)?;
    at("store.cache", check_caches(&cache))?;
    let mut keys = parse_all(Part::Keys, &written.keys)?;
    if keys.is_empty() {
        keys.push(keys_beside(&links, data_dir));
    }
    let parse_any = |part, text: &str| match text {
        "" => Ok(None),
        text => parse(part, text).map(Some),
    };
    let cursor = parse_any(Part::Cursor, &written.cursor)?;
    let others = links_nodes.iter().chain([&accounts]);
    let others = others.chain(&keys).chain(&cursor);
    check_clicks(&clicks, others)?;
    Ok(StoreSettings {
        stream: parse(Part::Stream, &written.stream)?,
        counters: parse_any(Part::Counters, &written.counters)?,
        invalidations: parse_any(Part::Invalidations, &written.invalidations)?,
        quotas: parse(Part::Quotas, &written.quotas)?,
        quotas_timeout: positive("limits.shared_timeout", &raw.limits.shared_timeout)?,
        pool: parse_all(Part::Pool, &written.pool)?,
        files: parse(Part::Files, &written.files)?,
        leases: parse(Part::Leases, &written.leases)?,
        keys_form: keys_form(&written.keys_form, strategy, &keys)?,
        region: (!raw.region.is_empty()).then(|| raw.region.as_str().into()),
        tuning: EngineTuning::resolve(raw)?,
        placement: placement(&raw.links)?,
        move_rate: raw.links.move_rate,
        links,
        links_nodes,
        shard_map,
        accounts,
        clicks,
        cache,
        keys,
        cursor,
    })
}

/// Returns the first node.
pub(crate) fn check_nodes(nodes: &[EngineAddress]) -> Result<&EngineAddress, String> {
    let first = nodes.first().ok_or("needs an address")?;
    if let Some(other) = nodes.iter().find(|node| node.kind() != first.kind()) {
        return Err(format!(
            "{first} and {other}: nodes must be of one engine, whose lists can be merged"
        ));
    }
    let spreads = nodes.iter().any(EngineAddress::spreads_by_itself);
    if nodes.len() > 1 && (spreads || !first.kind().serves(Part::ShardMap)) {
        return Err(format!(
            "{first}: this engine spreads links over its nodes by itself; name one address, with all hosts in it"
        ));
    }
    for (place, node) in nodes.iter().enumerate() {
        let is_twice = nodes[..place].contains(node);
        if is_twice && node.kind() != EngineKind::Memory {
            return Err(format!(
                "{node} is named twice: each node is a database of its own"
            ));
        }
    }
    match nodes.len() > usize::from(LOGICAL_SHARDS) {
        true => Err(format!("{} nodes: {LOGICAL_SHARDS} at most", nodes.len())),
        false => Ok(first),
    }
}

/// One server twice would hold both replicas of a link.
fn check_caches(servers: &[EngineAddress]) -> Result<(), String> {
    for (place, server) in servers.iter().enumerate() {
        if servers[..place].contains(server) {
            return Err(format!("{server} is named twice"));
        }
    }
    Ok(())
}

fn placement(written: &raw::Links) -> Result<Placement, ConfigError> {
    let virtual_nodes = within("links.virtual_nodes", written.virtual_nodes, 1, 10_000)?;
    match written.placement.as_str() {
        "modulo" => Ok(Placement::Modulo),
        "ring" => Ok(Placement::Ring {
            virtual_nodes: u32::try_from(virtual_nodes).unwrap_or(u32::MAX),
        }),
        "range" => Ok(Placement::Range),
        other => {
            let why = format!("{other:?}: use modulo, ring or range");
            at("links.placement", Err(why))
        }
    }
}

/// Name of the clicks database's file where none is chosen.
const CLICKS_FILE: &str = "clicks.db";

/// Where clicks are counted unless the configuration says otherwise.
pub(crate) fn clicks_beside(links: &EngineAddress) -> EngineAddress {
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
        EngineKind::Cassandra | EngineKind::DynamoDb => {
            EngineAddress::sqlite(data_dir.join(KEYS_FILE))
        }
        _ if links.spreads_by_itself() => EngineAddress::sqlite(data_dir.join(KEYS_FILE)),
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
