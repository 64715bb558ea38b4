//! The two sides of a copy.

use std::sync::Arc;

use anyhow::Context as _;
use curt_copy::{LinkSide, copy_stream, identity_by_note};
use curt_core::ports::{
    AccountItem, ClickItem, LinkTotals, LinkTransfer, MapNotes, ShardMaps, StreamId, Transfer,
};
use curt_core::{Placement, ShardMap};
use curt_shards::{ShardRouter, ShardedTransfer, TransferNode, known_nodes};
use curt_sqlite::Access;

use super::addresses::StoreAddresses;
use super::{CopiedPart, Copy};
use crate::config::Config;
use crate::data;
use crate::exit_code::{CommandError, ExitReason};
use crate::wiring::{EngineAddress, Engines, Part, copy_engines};

pub(super) struct CopySides {
    pub(super) from: OpenSide,
    pub(super) to: OpenSide,
    /// What is copied.
    pub(super) parts: Vec<CopiedPart>,
}

/// What is read or written of one side.
pub(super) struct OpenSide {
    pub(super) links: LinkSide,
    /// Where a copy to here notes how far it has come.
    pub(super) notes: Arc<dyn MapNotes>,
    pub(super) totals: Arc<dyn LinkTotals>,
    /// Where they are copied.
    pub(super) accounts: Option<Arc<dyn Transfer<AccountItem>>>,
    pub(super) clicks: Option<Arc<dyn Transfer<ClickItem>>>,
    addresses: StoreAddresses,
    engines: Engines,
}

impl CopySides {
    pub(super) async fn open(config: &Config, options: &Copy) -> anyhow::Result<Self> {
        let from = StoreAddresses::resolve(config, options.source())?;
        let to = StoreAddresses::resolve(config, options.destination())?;
        let mut parts = options.what.clone();
        // Nothing was ever counted there.
        if options.from_clicks.is_none() && data::is_missing(&from.clicks) {
            parts.retain(|part| *part != CopiedPart::Clicks);
        }
        from.require_there(&parts)?;
        if from.shares_with(&to, &parts) {
            return Err(same_database().into());
        }
        // Beside whichever server uses the source; the destination as its server would, which a running one refuses.
        let mut from = OpenSide::open(config, from, Access::Command).await?;
        let mut to = OpenSide::open(config, to, Access::Server).await?;
        let copies_links = parts.contains(&CopiedPart::Links);
        if copies_links && from.links.identity == to.links.identity {
            return Err(same_database().into());
        }
        let stream = copy_stream(&from.links.identity);
        for side in [&mut from, &mut to] {
            side.open_stores(&parts, stream)?;
        }
        Ok(Self { from, to, parts })
    }

    pub(super) async fn close(&self) {
        for side in [&self.from, &self.to] {
            side.engines.close().await;
        }
    }
}

impl OpenSide {
    /// A source is opened beside whichever server uses it.
    pub(super) async fn open_source(config: &Config, options: &Copy) -> anyhow::Result<Self> {
        let from = StoreAddresses::resolve(config, options.source())?;
        from.require_there(&[])?;
        Self::open(config, from, Access::Command).await
    }

    /// Opens accounts and clicks, where they are copied.
    fn open_stores(&mut self, parts: &[CopiedPart], copy: StreamId) -> anyhow::Result<()> {
        let StoreAddresses {
            option,
            accounts,
            clicks,
            ..
        } = &self.addresses;
        let named = |part: &str| format!("{option}: {part}");
        if parts.contains(&CopiedPart::Accounts) {
            let opened = self.engines.account_transfer(accounts);
            self.accounts = Some(opened.with_context(|| named("accounts"))?);
        }
        if parts.contains(&CopiedPart::Clicks) {
            let opened = self.engines.click_transfer(clicks, copy);
            self.clicks = Some(opened.with_context(|| named("clicks"))?);
        }
        Ok(())
    }

    async fn open(
        config: &Config,
        addresses: StoreAddresses,
        access: Access,
    ) -> anyhow::Result<Self> {
        let mut engines = copy_engines(config, access);
        let opened = match &addresses.links[..] {
            [one] => open_one(&mut engines, addresses.option, one).await,
            _ => {
                let placement = (access == Access::Server).then_some(config.store.placement);
                open_nodes(&mut engines, &addresses, placement).await
            }
        };
        let context = |error: anyhow::Error| error.context(addresses.option);
        let Links {
            transfer,
            identity,
            notes,
            totals,
        } = opened.map_err(context)?;
        Ok(Self {
            links: LinkSide { transfer, identity },
            notes,
            totals,
            accounts: None,
            clicks: None,
            addresses,
            engines,
        })
    }

    pub(super) async fn close(&self) {
        self.engines.close().await;
    }
}

/// The links of one side.
struct Links {
    transfer: Arc<dyn LinkTransfer>,
    /// By which the side is known from all others.
    identity: Box<str>,
    notes: Arc<dyn MapNotes>,
    totals: Arc<dyn LinkTotals>,
}

async fn open_one(
    engines: &mut Engines,
    option: &str,
    address: &EngineAddress,
) -> anyhow::Result<Links> {
    let notes = engines.notes(address)?;
    let totals = engines.links(address)?.links.totals;
    // An engine that spreads its links by itself is whole.
    if !address.kind().serves(Part::ShardMap) {
        return Ok(Links {
            transfer: engines.link_transfer(address, Arc::default())?,
            identity: identity_by_note(&*notes).await?,
            notes,
            totals,
        });
    }
    let map = engines.shard_maps(address)?.load().await?;
    require_whole(option, &map)?;
    Ok(Links {
        transfer: engines.link_transfer(address, Arc::new(map))?,
        identity: engines.links_node(address)?.identity().await?,
        notes,
        totals,
    })
}

/// Refuses a database that has, or is to have, a part of the links only.
fn require_whole(option: &str, map: &ShardMap) -> anyhow::Result<()> {
    match map.nodes().len() {
        0 | 1 => Ok(()),
        nodes => Err(refused(format!(
            "{option}: this database is one of {nodes} nodes, and has a part of the links only: name every node, in the order of \
             `curt shards show`"
        ))
        .into()),
    }
}

/// `placement`: the first map is made by it, where there is none.
async fn open_nodes(
    engines: &mut Engines,
    addresses: &StoreAddresses,
    placement: Option<Placement>,
) -> anyhow::Result<Links> {
    let maps: Arc<dyn ShardMaps> = engines.shard_maps(&addresses.shard_map)?;
    if placement.is_none() && maps.load().await?.version() == 0 {
        return Err(refused(format!(
            "{}: there is no shard map: these databases are not the nodes of one store",
            addresses.option
        ))
        .into());
    }
    let nodes = engines.shard_nodes(&addresses.links)?;
    let placement = placement.unwrap_or(Placement::Modulo);
    let router = ShardRouter::new(nodes, Arc::clone(&maps), placement);
    router.open_map().await?;
    let map = Arc::new(maps.load().await?);
    let mut transfers = Vec::new();
    for index in map.nodes() {
        let address = usize::try_from(index.0).ok();
        let address = address.and_then(|index| addresses.links.get(index));
        let Some(address) = address else {
            return Err(refused(format!(
                "{}: the shard map gives shards to node {}, which is not named",
                addresses.option, index.0
            ))
            .into());
        };
        transfers.push(TransferNode {
            index,
            name: address.to_string().into(),
            transfer: engines.link_transfer(address, Arc::clone(&map))?,
        });
    }
    let identities = known_nodes(&*maps).await?.into_iter();
    let identities: Vec<_> = identities.map(|(_, identity)| identity).collect();
    Ok(Links {
        transfer: Arc::new(ShardedTransfer::new(transfers, map, Arc::clone(&maps))),
        identity: identities.join("+").into(),
        notes: maps,
        totals: router,
    })
}

pub(super) fn refused(message: impl Into<String>) -> CommandError {
    CommandError::new(ExitReason::Refused, message)
}

fn same_database() -> CommandError {
    refused("--to: this is the database that --from names")
}
