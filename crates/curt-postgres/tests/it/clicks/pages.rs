//! What a page of clicks costs.

use std::time::{Duration, Instant};

use curt_core::ports::{ClickFilter, ClickQuery, ClickWindow};
use curt_core::{Click, ClickClass, ClickOutcome, ClickSubject, UnixMillis};
use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::need;
use curt_testkit::sample::{NOW, OWNER, later};

use crate::clicks::world::{Clicks, WAIT_MAX, click, link, open, stream};

const WINDOWS: u64 = 40;
const WINDOW_CLICKS: u64 = 500;
const LIMIT: usize = 20;
/// Pages of blocks, in the engine's sense, that three pages of clicks may read: about three of the forty blocks.
const READ_MAX: u64 = 60;

async fn fill(clicks: &Clicks) {
    let made = |n: u64| match n % 4 {
        0 => Click {
            outcome: ClickOutcome::BaseUrl,
            owner: None,
            ..click("x", later(n))
        },
        1 if n / WINDOW_CLICKS == 7 => click("rare", later(n)),
        _ => click("busy", later(n)),
    };
    for from in 0..WINDOWS {
        let numbers = from * WINDOW_CLICKS..(from + 1) * WINDOW_CLICKS;
        let flush = ClickWindow {
            partition: stream(1),
            from,
            to: from + 1,
            days: Vec::new().into(),
            blocks: Vec::new(),
        }
        .with_clicks(&numbers.map(made).map(with_own_texts).collect::<Vec<_>>());
        assert!(clicks.apply(flush).await.unwrap());
    }
}

/// A block whose texts are all the same would be too small to be stored apart from its row.
fn with_own_texts(click: Click) -> Click {
    Click {
        referrer: format!("{:016x}.example", click.at.0.wrapping_mul(0x9e37_79b9)).into(),
        ..click
    }
}

/// Pages of contents of blocks that were read so far. Sessions report when they end.
async fn pages_read(database: &Database) -> u64 {
    let started = Instant::now();
    let sessions = "select count(*) from pg_stat_activity \
        where datname = current_database() and application_name = 'curt'";
    while database.sql(sessions).unwrap() != "0" {
        assert!(started.elapsed() < WAIT_MAX, "sessions stay");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let read = "select toast_blks_read + toast_blks_hit from pg_statio_user_tables \
        where relname = 'click_blocks'";
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

/// The filters beside the blocks tell which are to be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_reads_little_more_than_it_shows() {
    let server = need!(shared());
    let database = server.database("clicks").unwrap();
    fill(&open(&database.url())).await;
    for query in queries() {
        let before = pages_read(&database).await;
        walk_three_pages(&open(&database.url()), &query).await;
        let read = pages_read(&database).await - before;
        assert!(read > 0, "nothing was read for {query:?}");
        assert!(read <= READ_MAX, "{read} pages for {query:?}");
    }
}
