//! Reports and flushes at the size that they are made for. The times are printed; `make soak` runs the full size.

use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::click_scale::{
    flush_beside_creates, page_among_many_clicks, report_on_ten_million_clicks,
};
use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::need;

fn open(database: &Database) -> Postgres {
    Postgres::open(&database.url(), &PostgresSettings::default()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_on_ten_million_clicks_are_quick() {
    let server = need!(shared());
    let database = server.database("scale").unwrap();
    report_on_ten_million_clicks(&*open(&database).clicks()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flush_holds_creates_up_for_a_moment() {
    let server = need!(shared());
    let database = server.database("scale").unwrap();
    let db = open(&database);
    flush_beside_creates(&*db.clicks(), db.links()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_clicks_reads_its_own_rows() {
    let server = need!(shared());
    let database = server.database("scale").unwrap();
    page_among_many_clicks(&*open(&database).clicks()).await;
}
