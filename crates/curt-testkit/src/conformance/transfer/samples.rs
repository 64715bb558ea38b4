//! Items to copy, and what is seen of them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use curt_core::ports::{
    CreationOutcome, IdempotencyRecord, ImportReport, LinkCounts, LinkItem, RequestToken,
    ShardItem, StoredRow, Transferred as _,
};
use curt_core::{
    KeyOrigin, Link, LinkId, LinkState, OwnerId, Revision, ShardId, Target, UnixMillis,
};

use super::LinkTransferPorts as Ports;
use crate::conformance::same;
use crate::sample::{alias, full_link, id, idempotent, later, link, plan};

pub(super) fn item(
    row: Option<StoredRow>,
    of: &LinkId,
    former_generation: Option<u32>,
) -> Result<LinkItem> {
    let item = ShardItem::Link {
        id: of.clone(),
        stored: row.map(Box::new),
        former_generation,
    };
    LinkItem::new(item).context("a link tells its shard")
}

pub(super) fn row(link: Link) -> StoredRow {
    StoredRow {
        was_permanent: link.status.is_permanent(),
        link,
        clicks_spent: 0,
        token: None,
    }
}

pub(super) fn item_of(link: Link) -> Result<LinkItem> {
    let of = link.id.clone();
    item(Some(row(link)), &of, None)
}

pub(super) fn at(generation: u32, version: u32) -> Revision {
    Revision {
        generation,
        version,
    }
}

pub(super) fn request(name: &str, outcome: Option<CreationOutcome>) -> Result<LinkItem> {
    let request = idempotent(name, 1);
    let record = IdempotencyRecord {
        fingerprint: request.fingerprint,
        plan: plan(1, &["x", "y"]),
        outcome,
    };
    let item = ShardItem::Request {
        owner: request.owner,
        key: request.key,
        record: Some(Box::new(record)),
    };
    LinkItem::new(item).context("a request tells its shard")
}

pub(super) fn released(shard: u16, origin: KeyOrigin, count: u64) -> Result<LinkItem> {
    Ok(LinkItem {
        shard: ShardId::new(shard).context("a shard")?,
        item: ShardItem::Released { origin, count },
    })
}

/// Something of every kind and in every state.
pub(super) fn samples() -> Result<Vec<LinkItem>> {
    let limited = StoredRow {
        clicks_spent: 4,
        was_permanent: true,
        token: Some(RequestToken([3; 16])),
        ..row(Link {
            max_clicks: Some(9),
            ..link("limited")
        })
    };
    let in_state = |key: &str, state, version| Link {
        state,
        revision: at(1, version),
        updated_at: later(5),
        ..link(key)
    };
    let seed = Link {
        target: Target::from_serialised("about:blank")?,
        owner: OwnerId::ANONYMOUS,
        state: LinkState::Seeded,
        revision: at(2, 0),
        origin: KeyOrigin::Claim,
        created_at: UnixMillis(0),
        updated_at: UnixMillis(0),
        ..link("seed")
    };
    let again = Link {
        revision: at(3, 2),
        updated_at: later(9),
        ..link("again")
    };
    Ok(vec![
        item_of(full_link("full"))?,
        item_of(alias("alias"))?,
        item(Some(limited), &id("limited"), None)?,
        item_of(in_state("grave", LinkState::Tombstone, 2))?,
        item_of(in_state("bin", LinkState::Deleted, 3))?,
        item_of(in_state("offbin", LinkState::DeletedDisabled, 4))?,
        item(Some(row(seed)), &id("seed"), Some(2))?,
        item(Some(row(again)), &id("again"), Some(2))?,
        item(None, &id("gone"), Some(7))?,
        request("begun\nover two lines", None)?,
        request(
            "done",
            Some(CreationOutcome {
                at: plan(1, &["x"]).at,
                ids: vec![Some(id("x")), None],
            }),
        )?,
        released(3, KeyOrigin::Ledger, 5)?,
        released(1023, KeyOrigin::Random, 2)?,
    ])
}

pub(super) async fn export(ports: &Ports) -> Result<Vec<LinkItem>> {
    let (mut items, mut position) = (Vec::new(), None::<Box<str>>);
    loop {
        let part = ports.transfer.export_all(position.as_deref()).await?;
        items.extend(part.items);
        match part.next {
            Some(next) => position = Some(next),
            None => return Ok(items),
        }
    }
}

pub(super) fn by_name(items: Vec<LinkItem>) -> Result<BTreeMap<Box<str>, LinkItem>> {
    let count = items.len();
    let named: BTreeMap<_, _> = items.into_iter().map(|item| (item.name(), item)).collect();
    same("items that are there once", named.len(), count)?;
    Ok(named)
}

pub(super) async fn import(ports: &Ports, items: &[LinkItem]) -> Result<ImportReport> {
    Ok(ports.transfer.import_all(items).await?)
}

pub(super) fn wrote(written: u64) -> ImportReport {
    ImportReport {
        written,
        ..ImportReport::default()
    }
}

/// The totals, without what is zero and their age.
pub(super) async fn counts(ports: &Ports) -> Result<LinkCounts> {
    let mut counts = ports.links.counts().await?;
    counts.lag = Duration::ZERO;
    counts.created.retain(|(_, count)| *count > 0);
    counts.created.sort_by_key(|(origin, _)| *origin as u8);
    Ok(counts)
}
