//! Rows that are not what this product writes.

use curt_core::ports::HourRange;
use curt_core::{ClickSubject, Dimension, ErrorKind};
use curt_testkit::engines::postgres::shared;
use curt_testkit::need;

use crate::clicks::world::{link, one_click, open, total};

/// Runs of one size that are put together.
const FAN_IN: u64 = 8;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_decoded_is_set_aside_and_counting_goes_on() {
    let server = need!(shared());
    let database = server.database("damaged").unwrap();
    let clicks = open(&database.url());
    assert!(clicks.apply(one_click(1, 0)).await.unwrap());
    assert_eq!(clicks.damage().await.unwrap(), None);
    database
        .sql("update rollup_chunks set content = '\\xff'")
        .unwrap();
    for from in 1..=2 * FAN_IN {
        assert!(clicks.apply(one_click(1, from)).await.unwrap());
        clicks.compact().await.unwrap();
    }
    let damage = clicks.damage().await.unwrap().unwrap();
    assert_eq!((damage.runs, damage.blocks), (1, 0));
    // What cannot be read is not told as something else.
    let subject = link("a");
    let report = clicks.top(&subject, Dimension::Class, HourRange::ALL, 10);
    assert_eq!(report.await.unwrap_err().kind, ErrorKind::Corrupt);
    let runs = database.sql("select count(*) from rollup_runs").unwrap();
    assert_eq!(runs, "3", "the damaged one and two that were merged");
    // An operator who gives up on it has the rest.
    database
        .sql("delete from rollup_runs where id in (select id from click_damage)")
        .unwrap();
    assert_eq!(total(&clicks, &link("a")).await, 2 * FAN_IN);
    assert_eq!(total(&clicks, &ClickSubject::Everything).await, 2 * FAN_IN);
}
