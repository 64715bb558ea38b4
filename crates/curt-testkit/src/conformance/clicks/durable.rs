use std::path::Path;

use anyhow::{Result, ensure};
use curt_core::ports::ClickWindow;
use curt_core::{Day, Dimension, SubjectDay};

use super::{DAY, Port, all_of, click, counted, day, link, series, sum, visitors, walk};
use crate::conformance::same;
use crate::sample::partition;

/// Writes in every way, drops the store, and finds everything again.
pub async fn survives_reopening_c1(folder: &Path, open: impl AsyncFn(&Path) -> Port) -> Result<()> {
    let flush = ClickWindow {
        partition: partition(3),
        from: 0,
        to: 10,
        days: vec![SubjectDay {
            visitors: visitors(0..4),
            ..counted(link("a"), vec![sum(1, Dimension::Country, "DE", 2)])
        }]
        .into(),
        blocks: Vec::new(),
    }
    .with_clicks(&[click("a", 5), click("b", 6)]);
    let store = open(folder).await;
    ensure!(store.apply(flush.clone()).await?, "the flush");
    store.salt(day(DAY), [7; 32]).await?;
    store.salt(day(DAY - 1), [6; 32]).await?;
    store.forget_salts(day(DAY)).await?;
    drop(store);

    let store = open(folder).await;
    same("offset", store.offset(partition(3)).await?, 10)?;
    ensure!(!store.apply(flush).await?, "C-1: applied again");
    let rollups = series(&store, &link("a"), Dimension::Country).await?;
    same(
        "rollups",
        rollups,
        vec![sum(1, Dimension::Country, "DE", 2)],
    )?;
    let days = store.visitors(&link("a"), Day::FIRST, Day::LAST).await?;
    same("visitors", days, vec![(day(DAY), 4)])?;
    let clicks = walk(&store, &all_of(link("a"))).await?;
    same("clicks", clicks, vec![click("a", 5)])?;
    same("salt", store.salt(day(DAY), [0; 32]).await?, [7; 32])?;
    let forgotten = store.salt(day(DAY - 1), [0; 32]).await?;
    same("a forgotten salt", forgotten, [0; 32])
}
