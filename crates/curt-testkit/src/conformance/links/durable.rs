use std::path::Path;

use anyhow::Result;
use curt_core::ports::{BeginReply, Inserted, LinkChange, RequestToken};
use curt_core::{Link, LinkId};

use super::{Seeded, add, changed, totals};
use crate::conformance::same;
use crate::sample::{
    NOW, SampleWrites, alias, expiring, full_link, id, idempotent, later, link, plan, released,
};

/// Writes in every way, drops the store, and finds everything again.
pub async fn survives_reopening_l1(
    folder: &Path,
    open: impl AsyncFn(&Path) -> Seeded,
) -> Result<()> {
    let store = open(folder).await;
    let ids = write_in_every_way(&store).await?;
    let links = read_all(&store, &ids).await?;
    let counts = totals(store.counts().await?);
    let spent = store.clicks_spent(&id("limited")).await?;
    same("spent", spent, 1)?;
    let expired = store.ended(later(9), 10).await?;
    drop(store);

    let store = open(folder).await;
    same("links", read_all(&store, &ids).await?, links)?;
    same("counts", totals(store.counts().await?), counts)?;
    same("spent", store.clicks_spent(&id("limited")).await?, spent)?;
    same("expired", store.ended(later(9), 10).await?, expired)?;
    let got = store.begin(&idempotent("o", 1), &plan(2, &["x"])).await?;
    let want = BeginReply::Resumed(plan(1, &["planned"]));
    same("the record of an idempotent request", got, want)?;
    let token = Some(RequestToken([1; 16]));
    let got = store.insert_if_absent(vec![link("planned")], token).await?;
    let want = Inserted::CreatedBefore(LinkChange::of(&link("planned")));
    same("its link", got, vec![want])?;
    same(
        "released",
        store.release(later(2), 10).await?,
        vec![released("deleted", 1)],
    )
}

async fn write_in_every_way(store: &Seeded) -> Result<Vec<LinkId>> {
    let keys = ["plain", "edited", "deleted", "released", "absent"];
    add(store, keys[..4].iter().map(|key| link(key))).await?;
    add(
        store,
        [
            full_link("full"),
            alias("alias"),
            expiring("expiring", later(9)),
        ],
    )
    .await?;
    add(store, [expiring("purged", NOW)]).await?;
    let limited = Link {
        max_clicks: Some(2),
        ..link("limited")
    };
    add(store, [limited.clone()]).await?;
    store.spend_click(&limited.id, limited.revision).await?;
    let planned = plan(1, &["planned"]);
    store.begin(&idempotent("o", 1), &planned).await?;
    let token = Some(planned.token);
    store.insert_if_absent(vec![link("planned")], token).await?;
    let edit = Link {
        title: Some("edited".into()),
        ..link("edited")
    };
    changed(store, store.update_at(edit, link("edited").revision).await?).await?;
    changed(store, store.delete(&id("released"), NOW).await?).await?;
    store.release(NOW, 10).await?;
    changed(store, store.delete(&id("deleted"), later(1)).await?).await?;
    let expired = store.ended(later(1), 10).await?;
    store.purge(&expired, later(5), later(5)).await?;
    store.seed(&[id("seed1"), id("seed2")]).await?;
    let claimed = store.claim(vec![link("wish")]).await?;
    let mut ids: Vec<LinkId> = keys.map(id).to_vec();
    ids.extend(
        [
            "full", "alias", "expiring", "purged", "planned", "seed1", "seed2",
        ]
        .map(id),
    );
    ids.extend(claimed.into_iter().map(|link| link.id));
    Ok(ids)
}

async fn read_all(store: &Seeded, ids: &[LinkId]) -> Result<Vec<Option<Link>>> {
    let mut links = Vec::new();
    for id in ids {
        links.push(store.get(id).await?);
    }
    Ok(links)
}
