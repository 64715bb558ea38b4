//! What a page of clicks costs.

use std::time::{Duration, Instant};

use curt_core::ports::{ClickFilter, ClickQuery, ClickWindow};
use curt_core::{Click, ClickClass, ClickOutcome, ClickSubject, UnixMillis};
use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::need;
use curt_testkit::sample::{NOW, OWNER, later};

use crate::clicks::world::{Clicks, PATIENCE, click, link, open, stream};

const CLICKS: u64 = 20_000;
const LIMIT: usize = 20;
/// Rows that three pages may read: the filtered ones a window each, and always far less than the table.
const READ_MAX: u64 = 3_500;

async fn fill(clicks: &Clicks) {
    let made = |n: u64| match n % 4 {
        0 => Click {
            outcome: ClickOutcome::BaseUrl,
            owner: None,
            ..click("x", later(n))
        },
        1 => click("rare", later(n)),
        _ => click("busy", later(n)),
    };
    for from in 0..CLICKS / 5_000 {
        let flush = ClickWindow {
            partition: stream(1),
            from,
            to: from + 1,
            days: Vec::new(),
            clicks: (from * 5_000..(from + 1) * 5_000).map(made).collect(),
        };
        assert!(clicks.apply(flush).await.unwrap());
    }
}

/// Rows of clicks that were read so far. Sessions report when they end.
async fn rows_read(database: &Database) -> u64 {
    let started = Instant::now();
    let sessions = "select count(*) from pg_stat_activity \
        where datname = current_database() and application_name = 'curt'";
    while database.sql(sessions).unwrap() != "0" {
        assert!(started.elapsed() < PATIENCE, "sessions stay");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let read = "select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables \
        where relname = 'clicks'";
    database.sql(read).unwrap().parse().unwrap()
}

async fn walk_three_pages(clicks: &Clicks, query: &ClickQuery) {
    let mut cursor = None;
    for _ in 0..3 {
        let query = ClickQuery {
            cursor: cursor.take(),
            ..query.clone()
        };
        let page = clicks.clicks(&query).await.unwrap();
        assert_eq!(page.clicks.len(), LIMIT, "{query:?}");
        cursor = page.next;
    }
}

fn queries() -> Vec<ClickQuery> {
    let subjects = [
        ClickSubject::Everything,
        ClickSubject::Orphans,
        ClickSubject::Owner(OWNER),
        link("busy"),
        link("rare"),
    ];
    let humans = ClickFilter {
        class: Some(ClickClass::Human),
        values: Vec::new(),
    };
    let of = |(subject, filter)| ClickQuery {
        subject,
        from: NOW,
        before: UnixMillis::MAX,
        filter,
        cursor: None,
        limit: LIMIT,
    };
    subjects
        .into_iter()
        .flat_map(|subject| {
            [
                (subject.clone(), ClickFilter::default()),
                (subject, humans.clone()),
            ]
        })
        .map(of)
        .collect()
}

/// A page must not sort the table, whatever the planner knows about it.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_reads_little_more_than_it_shows() {
    let server = need!(shared());
    let database = server.database("clicks").unwrap();
    fill(&open(&database.url())).await;
    for statistics in ["no", "fresh"] {
        if statistics == "fresh" {
            database.sql("analyze").unwrap();
        }
        for query in queries() {
            let before = rows_read(&database).await;
            walk_three_pages(&open(&database.url()), &query).await;
            let read = rows_read(&database).await - before;
            assert!(
                read <= READ_MAX,
                "{read} rows with {statistics} statistics for {query:?}"
            );
        }
    }
}
