use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use curt_core::limits::PAGE_LINKS_MAX;
use curt_core::ports::{LinkIndex, ListOrder, ListQuery};
use curt_core::{
    DomainId, EffectiveState, ErrorKind, Link, LinkId, LinkState, OwnerId, Revision, UnixMillis,
};

use super::{Port, add, changed, ids};
use crate::conformance::{refused, same};
use crate::sample::{NOW, SampleWrites, expiring, full_link, id, later, link};

pub(super) const ORDERS: [ListOrder; 4] = [
    ListOrder::NewestFirst,
    ListOrder::OldestFirst,
    ListOrder::KeyRising,
    ListOrder::KeyFalling,
];

pub(super) fn query() -> ListQuery {
    ListQuery {
        limit: PAGE_LINKS_MAX,
        ..ListQuery::default()
    }
}

/// Every page of the query, in order.
pub(super) async fn walk(
    store: &Arc<impl LinkIndex + ?Sized>,
    query: &ListQuery,
) -> Result<Vec<Link>> {
    let mut query = query.clone();
    let mut links = Vec::new();
    for _ in 0..10_000 {
        let page = store.list(&query).await?;
        ensure!(
            page.links.len() <= query.limit,
            "a page of {} over a limit of {}",
            page.links.len(),
            query.limit
        );
        links.extend(page.links);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Ok(links),
        }
    }
    anyhow::bail!("the walk does not come to an end")
}

/// The keys that the query finds, sorted.
pub(super) async fn found(store: &Port, query: ListQuery) -> Result<Vec<String>> {
    let links = walk(store, &query).await?;
    let mut keys: Vec<String> = links.iter().map(|link| link.id.key.to_string()).collect();
    keys.sort();
    Ok(keys)
}

pub(super) fn keys(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

pub async fn an_empty_store_has_one_empty_page(store: Port) -> Result<()> {
    for order in ORDERS {
        let page = store.list(&ListQuery { order, ..query() }).await?;
        ensure!(
            page.links.is_empty() && page.next.is_none(),
            "{order:?}: {page:?}"
        );
    }
    Ok(())
}

pub async fn only_links_are_listed(store: Port) -> Result<()> {
    let disabled = Link {
        state: LinkState::Disabled,
        ..link("disabled")
    };
    add(&store, [link("active"), disabled, link("deleted")]).await?;
    add(
        &store,
        [expiring("expired", UnixMillis(1)), expiring("purged", NOW)],
    )
    .await?;
    changed(&store, store.delete(&id("deleted"), NOW).await?).await?;
    store
        .purge(&[(id("purged"), Revision::FIRST)], NOW, NOW)
        .await?;
    for order in ORDERS {
        let got = found(&store, ListQuery { order, ..query() }).await?;
        same("listed", got, keys(&["active", "disabled", "expired"]))?;
    }
    let state = Some(EffectiveState::Deleted);
    let got = found(&store, ListQuery { state, ..query() }).await?;
    same("tombstones, even if asked for", got, vec![])
}

pub async fn an_owner_sees_its_own(store: Port) -> Result<()> {
    let of = |owner, key| Link {
        owner: OwnerId(owner),
        ..link(key)
    };
    let large = 7_000_000_000_000_000_000;
    add(
        &store,
        [
            of(1, "a"),
            of(2, "b"),
            of(1, "c"),
            of(0, "d"),
            of(large, "e"),
        ],
    )
    .await?;
    for (owner, want) in [
        (Some(1), keys(&["a", "c"])),
        (Some(2), keys(&["b"])),
        (Some(0), keys(&["d"])),
        (Some(large), keys(&["e"])),
        (Some(3), vec![]),
        (None, keys(&["a", "b", "c", "d", "e"])),
    ] {
        for order in ORDERS {
            let owner = owner.map(OwnerId);
            let got = found(
                &store,
                ListQuery {
                    owner,
                    order,
                    ..query()
                },
            )
            .await?;
            same("of the owner", got, want.clone())?;
        }
    }
    Ok(())
}

/// Links over two domains in which the order of creation and the order of keys differ.
fn mixed_links() -> Vec<Link> {
    let mixed = |n: u64| {
        let shuffled = n * 37 % 101;
        let mut link = link(&format!("k{shuffled:03}"));
        link.created_at = later(n);
        link.id.domain = DomainId(u32::from(n % 10 == 9));
        link
    };
    (0..50).map(mixed).collect()
}

pub async fn a_list_shows_whole_links(store: Port) -> Result<()> {
    let full = full_link("full");
    add(&store, [full.clone(), link("plain")]).await?;
    for order in ORDERS {
        for owner in [None, Some(full.owner)] {
            let query = ListQuery {
                order,
                owner,
                ..query()
            };
            let mut got = walk(&store, &query).await?;
            got.retain(|link| link.id == full.id);
            same(&format!("{query:?}"), got, vec![full.clone()])?;
        }
    }
    Ok(())
}

pub async fn every_order_is_kept_over_pages(store: Port) -> Result<()> {
    let links = mixed_links();
    add(&store, links.clone()).await?;
    for order in ORDERS {
        let mut want = links.clone();
        match order {
            ListOrder::OldestFirst => {}
            ListOrder::NewestFirst => want.reverse(),
            ListOrder::KeyRising => want.sort_by_key(|link| link.id.clone()),
            ListOrder::KeyFalling => {
                want.sort_by_key(|link| link.id.clone());
                want.reverse();
            }
        }
        for limit in [1, 7, 50, PAGE_LINKS_MAX] {
            let got = walk(
                &store,
                &ListQuery {
                    order,
                    limit,
                    ..query()
                },
            )
            .await?;
            let what = format!("{order:?} by {limit}");
            same(&what, ids(&got), ids(&want))?;
            ensure!(got == want, "{what}: the links differ from what was stored");
        }
    }
    Ok(())
}

pub async fn links_of_one_instant_are_seen_once_each(store: Port) -> Result<()> {
    const LINKS: usize = 60;
    add(&store, (0..LINKS).map(|n| link(&format!("k{n}")))).await?;
    for order in ORDERS {
        for limit in [1, 7, 20] {
            let got = ids(&walk(
                &store,
                &ListQuery {
                    order,
                    limit,
                    ..query()
                },
            )
            .await?);
            same("seen", got.len(), LINKS)?;
            let distinct: HashSet<LinkId> = got.into_iter().collect();
            same("distinct", distinct.len(), LINKS)?;
        }
    }
    Ok(())
}

/// Links that were there from the start and still are at the end are seen once, whatever happens in between.
pub async fn a_walk_survives_changes(store: Port) -> Result<()> {
    for order in ORDERS {
        let name = |n: u64| format!("{order:?}{n:02}");
        let owner = OwnerId(order as u64 + 1);
        let made = |key: &str, at| Link {
            owner,
            created_at: at,
            ..link(key)
        };
        add(&store, (0..30).map(|n| made(&name(n), later(n)))).await?;
        let mut query = ListQuery {
            owner: Some(owner),
            order,
            limit: 4,
            ..query()
        };
        let mut seen = Vec::new();
        let mut deleted = Vec::new();
        for round in 0..100 {
            let page = store.list(&query).await?;
            seen.extend(ids(&page.links));
            let Some(next) = page.next else { break };
            query.cursor = Some(next);
            // The link that the cursor stands on goes, and others come before and behind it.
            let last = page.links.last().context("a page without links")?;
            changed(&store, store.delete(&last.id, later(99)).await?).await?;
            deleted.push(last.id.clone());
            add(
                &store,
                [made(&format!("new{order:?}{round}"), later(round))],
            )
            .await?;
        }
        let first: HashSet<LinkId> = (0..30).map(|n| id(&name(n))).collect();
        let from_start: Vec<_> = seen.iter().filter(|id| first.contains(id)).collect();
        same(&format!("{order:?}: seen once"), from_start.len(), 30)?;
        let distinct: HashSet<_> = seen.iter().collect();
        same(&format!("{order:?}: distinct"), distinct.len(), seen.len())?;
        ensure!(deleted.len() >= 7, "{order:?}: the walk took too few pages");
    }
    Ok(())
}

pub async fn foreign_cursors_are_refused(store: Port) -> Result<()> {
    add(&store, (0..5).map(|n| link(&format!("k{n}")))).await?;
    let with = |order, cursor: &str| ListQuery {
        order,
        cursor: Some(cursor.into()),
        limit: 2,
        ..ListQuery::default()
    };
    for order in ORDERS {
        for cursor in ["", "garbage", "0", "k1", "%00", "\u{1f980}", "eyJrIjoxfQ"] {
            let got = store.list(&with(order, cursor)).await;
            refused(&format!("cursor {cursor:?}"), got, ErrorKind::Invalid)?;
        }
        let first = ListQuery {
            order,
            limit: 2,
            ..ListQuery::default()
        };
        let next = store.list(&first).await?.next.context("a second page")?;
        for other in ORDERS.into_iter().filter(|other| *other != order) {
            let got = store.list(&with(other, &next)).await;
            refused(&format!("{order:?} in {other:?}"), got, ErrorKind::Invalid)?;
        }
        for end in [1, next.len() / 2] {
            let Some(cut) = next.get(..end) else { continue };
            let got = store.list(&with(order, cut)).await;
            refused(&format!("cut to {cut:?}"), got, ErrorKind::Invalid)?;
        }
    }
    Ok(())
}
