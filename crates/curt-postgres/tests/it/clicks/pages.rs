//! What a page of visits costs.

use std::time::{Duration, Instant};

use curt_core::ports::{ClickFlush, VisitFilter, VisitQuery};
use curt_core::{ClickSubject, UnixMillis, VisitKind, VisitRow, Visited};
use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::need;
use curt_testkit::sample::{NOW, OWNER, later};

use crate::clicks::world::{Clicks, PATIENCE, link, open, stream, visit};

const VISITS: u64 = 20_000;
const LIMIT: usize = 20;
/// Rows that three pages may read: the filtered ones a window each, and always far less than the table.
const READ_MAX: u64 = 3_500;

async fn fill(clicks: &Clicks) {
    let made = |n: u64| match n % 4 {
        0 => VisitRow {
            visited: Visited::BaseUrl,
            owner: None,
            ..visit("x", later(n))
        },
        1 => visit("rare", later(n)),
        _ => visit("busy", later(n)),
    };
    for from in 0..VISITS / 5_000 {
        let flush = ClickFlush {
            partition: stream(1),
            from,
            to: from + 1,
            days: Vec::new(),
            visits: (from * 5_000..(from + 1) * 5_000).map(made).collect(),
        };
        assert!(clicks.apply(flush).await.unwrap());
    }
}

/// Rows of visits that were read so far. Sessions report when they end.
async fn rows_read(database: &Database) -> u64 {
    let started = Instant::now();
    let sessions = "select count(*) from pg_stat_activity \
        where datname = current_database() and application_name = 'curt'";
    while database.sql(sessions).unwrap() != "0" {
        assert!(started.elapsed() < PATIENCE, "sessions stay");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let read = "select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables \
        where relname = 'click_visits'";
    database.sql(read).unwrap().parse().unwrap()
}

async fn walk_three_pages(clicks: &Clicks, query: &VisitQuery) {
    let mut cursor = None;
    for _ in 0..3 {
        let query = VisitQuery {
            cursor: cursor.take(),
            ..query.clone()
        };
        let page = clicks.visits(&query).await.unwrap();
        assert_eq!(page.visits.len(), LIMIT, "{query:?}");
        cursor = page.next;
    }
}

fn queries() -> Vec<VisitQuery> {
    let subjects = [
        ClickSubject::Everything,
        ClickSubject::Orphans,
        ClickSubject::Owner(OWNER),
        link("busy"),
        link("rare"),
    ];
    let humans = VisitFilter {
        kind: Some(VisitKind::Human),
        values: Vec::new(),
    };
    let of = |(subject, filter)| VisitQuery {
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
                (subject.clone(), VisitFilter::default()),
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
    let database = server.database("visits").unwrap();
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
