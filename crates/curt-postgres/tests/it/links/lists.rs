//! What a page costs.

use std::time::{Duration, Instant};

use curt_core::ports::{ListOrder, ListQuery};
use curt_core::{Link, OwnerId};
use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::length::time_max;
use curt_testkit::need;
use curt_testkit::sample::{SampleWrites, later, link};

use crate::links::world::{Links, open};

const LINKS: u64 = 20_000;
/// Rows that three pages may read: usually one more each than they show, and always far less than the table.
const READ_MAX: u64 = 1_500;

async fn fill(links: &Links) {
    let made = |n: u64| Link {
        owner: OwnerId(n % 2),
        created_at: later(n),
        tags: vec!["common".into()],
        ..link(&format!("k{:05}", n * 7_919 % LINKS))
    };
    for part in 0..LINKS / 1_000 {
        let part = (part * 1_000..(part + 1) * 1_000).map(made).collect();
        links.insert(part).await.unwrap();
    }
}

/// Rows of links that were read so far. Sessions report when they end.
async fn rows_read(database: &Database) -> u64 {
    let started = Instant::now();
    let sessions = "select count(*) from pg_stat_activity \
        where datname = current_database() and application_name = 'curt'";
    while database.sql(sessions).unwrap() != "0" {
        assert!(
            started.elapsed() < time_max(Duration::from_secs(20)),
            "sessions stay"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let read = "select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables where relname = 'links'";
    database.sql(read).unwrap().parse().unwrap()
}

async fn walk_three_pages(links: &Links, query: &ListQuery) {
    let mut cursor = None;
    for _ in 0..3 {
        let query = ListQuery {
            cursor: cursor.take(),
            ..query.clone()
        };
        let page = links.list(&query).await.unwrap();
        assert_eq!(page.links.len(), query.limit, "{query:?}");
        cursor = page.next;
    }
}

fn queries() -> Vec<ListQuery> {
    let page = ListQuery {
        limit: 20,
        ..ListQuery::default()
    };
    let of_owner = ListQuery {
        owner: Some(OwnerId(1)),
        ..page.clone()
    };
    let searching = ListQuery {
        search: Some("example".into()),
        ..of_owner.clone()
    };
    let tagged = ListQuery {
        tags: vec!["Common".into()],
        ..page.clone()
    };
    vec![page, of_owner, searching, tagged]
}

/// A page must not sort the table, whatever the planner knows about it.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_reads_little_more_than_it_shows() {
    let server = need!(shared());
    let database = server.database("pages").unwrap();
    fill(&open(&database.url())).await;
    for statistics in ["no", "fresh"] {
        if statistics == "fresh" {
            database.sql("analyze").unwrap();
        }
        for order in [ListOrder::NewestFirst, ListOrder::OldestFirst] {
            for query in queries() {
                let query = ListQuery { order, ..query };
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
}
