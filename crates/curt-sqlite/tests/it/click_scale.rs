//! Reports and flushes at the size that they are made for. The times are printed; `make soak` runs the full size.

use std::sync::Arc;

use curt_sqlite::{Sqlite, SqliteSettings};
use curt_testkit::click_scale::{
    flush_beside_creates, page_among_many_clicks, report_on_ten_million_clicks,
};

fn open(folder: &tempfile::TempDir) -> Arc<Sqlite> {
    Sqlite::open_clicks(folder.path().join("clicks.db"), SqliteSettings::default()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_on_ten_million_clicks_are_quick() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    report_on_ten_million_clicks(&*db.clicks()).await;
    db.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_go_on_beside_flushes() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    let main = folder.path().join("curt.db");
    let main = Sqlite::open(main, SqliteSettings::default()).unwrap();
    flush_beside_creates(&*db.clicks(), main.links()).await;
    db.close().await;
    main.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_clicks_reads_its_own_rows() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder);
    page_among_many_clicks(&*db.clicks()).await;
    db.close().await;
}
