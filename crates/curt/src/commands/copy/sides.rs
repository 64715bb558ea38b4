//! The two databases of a copy.

use std::sync::Arc;

use curt_copy::LinkSide;
use curt_core::ports::{LinkTotals, LinkTransfer, ShardMaps};
use curt_sqlite::Access;

use crate::config::{Config, ConfigError};
use crate::data;
use crate::exit_code::{CommandError, ExitReason};
use crate::wiring::{EngineAddress, EngineKind, Engines, LinkTransferPorts, Part, open_transfer};

pub(super) struct CopySides {
    pub(super) from: LinkSide,
    pub(super) to: LinkSide,
    /// Of the destination.
    pub(super) notes: Arc<dyn ShardMaps>,
    pub(super) source_totals: Arc<dyn LinkTotals>,
    pub(super) destination_totals: Arc<dyn LinkTotals>,
    engines: [Engines; 2],
}

/// What is read of the source.
pub(super) struct Source {
    pub(super) transfer: Arc<dyn LinkTransfer>,
    ports: LinkTransferPorts,
}

fn address(config: &Config, option: &str, url: &str) -> Result<EngineAddress, ConfigError> {
    let address = EngineAddress::parse(url, Part::Links, &config.data_dir)
        .map_err(|problem| ConfigError::new(format!("{option}: {problem}")))?;
    match address.kind() {
        EngineKind::Memory => Err(ConfigError::new(format!(
            "{option}: what is in memory: is gone with its process"
        ))),
        _ => Ok(address),
    }
}

fn source_address(config: &Config, url: &str) -> Result<EngineAddress, ConfigError> {
    let from = address(config, "--from", url)?;
    match data::is_missing(&from) {
        true => Err(ConfigError::new(format!(
            "--from: there is no data here: {from} is missing or empty. A relative path starts at data_dir: name it with --set \
             data_dir=FOLDER"
        ))),
        false => Ok(from),
    }
}

/// The source, beside whichever server uses it.
pub(super) fn open_source(config: &Config, url: &str) -> anyhow::Result<(Source, Engines)> {
    let from = source_address(config, url)?;
    let (ports, engines) = open_transfer(config, "--from", &from, Access::Command)?;
    let transfer = Arc::clone(&ports.transfer);
    Ok((Source { transfer, ports }, engines))
}

impl CopySides {
    /// The destination is opened as its server would: a file that another process serves is refused.
    pub(super) async fn open(config: &Config, from: &str, to: &str) -> anyhow::Result<Self> {
        let to_address = address(config, "--to", to)?;
        if source_address(config, from)? == to_address {
            return Err(same_database().into());
        }
        let (source, from_engines) = open_source(config, from)?;
        let (to, to_engines) = open_transfer(config, "--to", &to_address, Access::Server)?;
        let from = source.ports;
        let sides = Self {
            from: side(&from).await?,
            to: side(&to).await?,
            notes: to.maps,
            source_totals: from.totals,
            destination_totals: to.totals,
            engines: [from_engines, to_engines],
        };
        if sides.from.identity == sides.to.identity {
            return Err(same_database().into());
        }
        require_whole("--from", &*from.maps).await?;
        require_whole("--to", &*sides.notes).await?;
        Ok(sides)
    }

    /// Whether nothing was ever stored at the destination.
    pub(super) async fn is_destination_empty(&self) -> anyhow::Result<bool> {
        let counts = self.destination_totals.counts().await?;
        let created: u64 = counts.created.iter().map(|(_, count)| count).sum();
        Ok(created + counts.live + counts.deleted + counts.seeded == 0)
    }

    pub(super) async fn close(&self) {
        for engines in &self.engines {
            engines.close().await;
        }
    }
}

async fn side(ports: &LinkTransferPorts) -> anyhow::Result<LinkSide> {
    Ok(LinkSide {
        transfer: Arc::clone(&ports.transfer),
        identity: ports.shards.identity().await?,
    })
}

/// Refuses a database that has, or is to have, a part of the links only.
async fn require_whole(option: &str, maps: &dyn ShardMaps) -> anyhow::Result<()> {
    match maps.load().await?.nodes().len() {
        0 | 1 => Ok(()),
        _ => Err(refused(format!(
            "{option}: this database is one node of several, and not for all links: copy from or to a database by itself, and \
             let `curt shards` move links between nodes"
        ))
        .into()),
    }
}

pub(super) fn refused(message: impl Into<String>) -> CommandError {
    CommandError::new(ExitReason::Refused, message)
}

fn same_database() -> CommandError {
    refused("--to: this is the database that --from names")
}
