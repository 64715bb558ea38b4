//! Clauses of [`LinkStore`], a file for each part of the port.

mod agreement;
mod change;
mod claim;
mod counts;
mod durable;
mod expiry;
mod filter;
mod insert;
mod list;
mod once;
mod spend;
mod values;

pub use agreement::agreement;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use curt_core::ports::{
    ChangeReply, ClaimReply, InsertReply, InsertRequest, Inserted, LinkCounts, LinkStore,
};
use curt_core::{KeyOrigin, Link, LinkId};

use super::{Suite, run_clauses, same};
use crate::sample::request;

type Port = Arc<dyn LinkStore>;

pub async fn suite(make: impl AsyncFn() -> Port) {
    let mut suite = Suite::of("LinkStore");
    insert::clauses(&mut suite, &make).await;
    once::clauses(&mut suite, &make).await;
    values::clauses(&mut suite, &make).await;
    change::clauses(&mut suite, &make).await;
    expiry::clauses(&mut suite, &make).await;
    claim::clauses(&mut suite, &make).await;
    spend::clauses(&mut suite, &make).await;
    list::clauses(&mut suite, &make).await;
    filter::clauses(&mut suite, &make).await;
    counts::clauses(&mut suite, &make).await;
    run_clauses!(suite, make, answers_a_ping);
    suite.finish();
}

/// `open` opens the store in the given folder; what an earlier one wrote there must be found again.
pub async fn suite_durable(folder: &Path, open: impl AsyncFn(&Path) -> Port) {
    let mut suite = Suite::of("LinkStore, reopened");
    suite
        .clause(
            "survives_reopening_l1",
            durable::survives_reopening_l1(folder, open),
        )
        .await;
    suite.finish();
}

async fn answers_a_ping(store: Port) -> Result<()> {
    store.ping().await?;
    Ok(())
}

/// Inserts links whose keys are free.
async fn add(store: &Port, links: impl IntoIterator<Item = Link>) -> Result<()> {
    let links: Vec<Link> = links.into_iter().collect();
    let want = vec![Inserted::Created; links.len()];
    let got = insert(store, request(links)).await?;
    same("inserted", got, want)
}

/// Inserts and expects an answer per link.
async fn insert(store: &Port, request: InsertRequest) -> Result<Vec<Inserted>> {
    match store.insert(request).await? {
        InsertReply::Stored(outcomes) => Ok(outcomes),
        other => bail!("expected an answer per link, got {other:?}"),
    }
}

async fn claim(store: &Port, request: InsertRequest) -> Result<Vec<Link>> {
    match store.claim(request).await? {
        ClaimReply::Claimed(links) => Ok(links),
        other => bail!("expected claimed links, got {other:?}"),
    }
}

/// The link, which must be there.
async fn stored(store: &Port, id: &LinkId) -> Result<Link> {
    let link = store.get(id).await?;
    link.with_context(|| format!("{id} is not stored"))
}

/// The link as a change left it.
fn changed(reply: ChangeReply) -> Result<Link> {
    match reply {
        ChangeReply::Changed(link) => Ok(*link),
        other => bail!("expected a changed link, got {other:?}"),
    }
}

fn ids(links: &[Link]) -> Vec<LinkId> {
    links.iter().map(|link| link.id.clone()).collect()
}

/// Totals in a form that does not depend on the order or the zeros of `created`.
fn totals(counts: LinkCounts) -> LinkCounts {
    let created = KeyOrigin::ALL.map(|origin| (origin, counts.created_from(origin)));
    let created = created
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    LinkCounts { created, ..counts }
}

async fn expect_counts(store: &Port, what: &str, want: &LinkCounts) -> Result<()> {
    let got = totals(store.counts().await?);
    same(&format!("counts after {what}"), got, totals(want.clone()))
}
