//! Clauses of [`ClickStore`], a file for each part of the port.

mod agreement;
mod apply;
mod durable;
mod forget;
mod single_clicks;
mod sums;
mod visitors;

pub use agreement::agreement;

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use curt_core::ports::{ClickFilter, ClickFlush, ClickQuery, ClickStore, HourRange};
use curt_core::{
    Click, ClickClass, ClickOutcome, ClickSubject, ClickSum, Day, Dimension, Sketch, SubjectDay,
    UnixMillis,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Suite;
use crate::sample::{OWNER, id, partition};

type Port = Arc<dyn ClickStore>;

pub async fn suite(make: impl AsyncFn() -> Port) {
    let mut suite = Suite::of("ClickStore");
    apply::clauses(&mut suite, &make).await;
    sums::clauses(&mut suite, &make).await;
    visitors::clauses(&mut suite, &make).await;
    single_clicks::clauses(&mut suite, &make).await;
    forget::clauses(&mut suite, &make).await;
    suite.finish();
}

/// `open` opens the store in the given folder; what an earlier one wrote there must be found again.
pub async fn suite_durable(folder: &Path, open: impl AsyncFn(&Path) -> Port) {
    let mut suite = Suite::of("ClickStore, reopened");
    suite
        .clause(
            "survives_reopening_c1",
            durable::survives_reopening_c1(folder, open),
        )
        .await;
    suite.finish();
}

/// The day of most samples.
const DAY: u32 = 19_000;

fn day(number: u32) -> Day {
    Day::numbered(number)
}

/// The start of an hour of [`DAY`], or of the days around it.
fn hour(hour: i64) -> UnixMillis {
    UnixMillis(day(DAY).start().0 + hour * 3_600_000)
}

fn sum(at: i64, dimension: Dimension, value: &str, count: u64) -> ClickSum {
    ClickSum {
        hour: hour(at),
        dimension,
        value: value.into(),
        count,
    }
}

fn link(key: &str) -> ClickSubject {
    ClickSubject::Link(id(key), 1)
}

fn counted(subject: ClickSubject, sums: Vec<ClickSum>) -> SubjectDay {
    SubjectDay {
        subject,
        day: day(DAY),
        sums,
        visitors: Sketch::new(),
    }
}

/// Sums of one link in one flush.
fn flush(from: u64, to: u64, key: &str, sums: Vec<ClickSum>) -> ClickFlush {
    flush_of(from, to, vec![counted(link(key), sums)])
}

fn flush_of(from: u64, to: u64, days: Vec<SubjectDay>) -> ClickFlush {
    ClickFlush {
        partition: partition(0),
        from,
        to,
        days,
        clicks: Vec::new(),
    }
}

async fn series(
    store: &Port,
    subject: &ClickSubject,
    dimension: Dimension,
) -> Result<Vec<ClickSum>> {
    Ok(store.series(subject, dimension, HourRange::ALL).await?)
}

/// A sketch of visitors with these numbers, which are spread as hashes are.
fn visitors(numbers: impl IntoIterator<Item = u64>) -> Sketch {
    let mut sketch = Sketch::new();
    for number in numbers {
        sketch.insert(StdRng::seed_from_u64(number).random());
    }
    sketch
}

fn click(key: &str, at: i64) -> Click {
    Click {
        at: UnixMillis(at),
        outcome: ClickOutcome::Link(id(key), 1),
        owner: Some(OWNER),
        tags: Vec::new(),
        class: ClickClass::Human,
        country: "DE".into(),
        browser: "Firefox".into(),
        system: "Linux".into(),
        device: "desktop".into(),
        referrer: "direct".into(),
        language: "de".into(),
        address: None,
    }
}

/// Every click of the subject.
fn all_of(subject: ClickSubject) -> ClickQuery {
    ClickQuery {
        subject,
        from: UnixMillis(i64::MIN),
        before: UnixMillis(i64::MAX),
        filter: ClickFilter::default(),
        cursor: None,
        limit: 100,
    }
}

/// All pages of the query, one after the other.
async fn walk(store: &Port, query: &ClickQuery) -> Result<Vec<Click>> {
    let mut clicks = Vec::new();
    let mut query = query.clone();
    loop {
        let page = store.clicks(&query).await?;
        anyhow::ensure!(
            page.clicks.len() <= query.limit,
            "a page of {} for a limit of {}",
            page.clicks.len(),
            query.limit
        );
        clicks.extend(page.clicks);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Ok(clicks),
        }
    }
}
