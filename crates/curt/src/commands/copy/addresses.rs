//! Which databases one side of a copy is.

use super::CopiedPart;
use crate::config::{Config, ConfigError, check_nodes, clicks_beside};
use crate::data;
use crate::wiring::{EngineAddress, EngineKind, Part};

/// Stands for what the configuration names.
const CONFIGURED: &str = "config";

/// The databases of one side.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StoreAddresses {
    /// `--from` or `--to`.
    pub(super) option: &'static str,
    /// All nodes, in the order of the shard map.
    pub(super) links: Vec<EngineAddress>,
    pub(super) shard_map: EngineAddress,
    pub(super) accounts: EngineAddress,
    pub(super) clicks: EngineAddress,
}

/// What an operator names of one side.
pub(super) struct SideOptions<'a> {
    /// `--from` or `--to`.
    pub(super) option: &'static str,
    pub(super) links: &'a [String],
    pub(super) accounts: Option<&'a str>,
    pub(super) clicks: Option<&'a str>,
}

impl StoreAddresses {
    /// Those that are named, or those of the configuration. Accounts and clicks are beside links, as in a configuration,
    /// unless they are named.
    pub(super) fn resolve(
        config: &Config,
        SideOptions {
            option,
            links: urls,
            accounts,
            clicks,
        }: SideOptions<'_>,
    ) -> Result<Self, ConfigError> {
        let store = &config.store;
        let wrong = |problem: String| ConfigError::new(format!("{option}: {problem}"));
        let parse = |url: &String| EngineAddress::parse(url, Part::Links, &config.data_dir);
        let links: Vec<EngineAddress> = match urls {
            [word] if word == CONFIGURED => store.links_nodes.clone(),
            urls => urls
                .iter()
                .map(parse)
                .collect::<Result<_, _>>()
                .map_err(wrong)?,
        };
        let first = check_nodes(&links).map_err(wrong)?.clone();
        let is_configured = links == store.links_nodes;
        if links.iter().any(|node| node.kind() == EngineKind::Memory) {
            return Err(wrong(
                "what is in memory: is gone with its process".to_owned(),
            ));
        }
        let named = |part: Part, suffix: &str, url: Option<&str>, default: EngineAddress| match url
        {
            None => Ok(default),
            Some(url) => EngineAddress::parse(url, part, &config.data_dir)
                .map_err(|problem| ConfigError::new(format!("{option}-{suffix}: {problem}"))),
        };
        let beside = match is_configured {
            true => (store.accounts.clone(), store.clicks.clone()),
            false => (first.clone(), clicks_beside(&first)),
        };
        Ok(Self {
            option,
            accounts: named(Part::Accounts, "accounts", accounts, beside.0)?,
            clicks: named(Part::Clicks, "clicks", clicks, beside.1)?,
            shard_map: match is_configured {
                true => store.shard_map.clone(),
                false => first,
            },
            links,
        })
    }

    /// Refuses files that are not there: a source is not made.
    pub(super) fn require_there(&self, parts: &[CopiedPart]) -> Result<(), ConfigError> {
        let has = |part| parts.contains(&part);
        let accounts = has(CopiedPart::Accounts).then_some(&self.accounts);
        let clicks = has(CopiedPart::Clicks).then_some(&self.clicks);
        let mut needed = self.links.iter().chain(accounts).chain(clicks);
        let Some(missing) = needed.find(|address| data::is_missing(address)) else {
            return Ok(());
        };
        Err(ConfigError::new(format!(
            "{}: there is no data here: {missing} is missing or empty. A relative path starts at data_dir: name it with --set \
             data_dir=FOLDER",
            self.option
        )))
    }

    /// Whether a part would be copied to itself.
    pub(super) fn shares_with(&self, other: &Self, parts: &[CopiedPart]) -> bool {
        parts.iter().any(|part| match part {
            CopiedPart::Links => self
                .links
                .iter()
                .any(|address| other.links.contains(address)),
            CopiedPart::Accounts => self.accounts == other.accounts,
            CopiedPart::Clicks => self.clicks == other.clicks,
        })
    }
}
