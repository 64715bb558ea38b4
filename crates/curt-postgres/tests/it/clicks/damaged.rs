//! Rows that are not what this product writes.

use curt_core::ClickSubject;
use curt_testkit::engines::postgres::shared;
use curt_testkit::need;

use crate::clicks::world::{link, one_click, open, total};

#[tokio::test(flavor = "multi_thread")]
async fn a_day_that_cannot_be_decoded_is_set_aside_and_begun_anew() {
    let server = need!(shared());
    let database = server.database("damaged").unwrap();
    let clicks = open(&database.url());
    assert!(clicks.apply(one_click(1, 0)).await.unwrap());
    assert_eq!(clicks.damage().await.unwrap(), None);
    database
        .sql("update click_days set counts = '\\xff' where kind = 4")
        .unwrap();
    assert!(clicks.apply(one_click(1, 1)).await.unwrap());
    assert_eq!(total(&clicks, &link("a")).await, 1, "only what came since");
    assert_eq!(total(&clicks, &ClickSubject::Everything).await, 2);
    let damage = clicks.damage().await.unwrap().unwrap();
    assert_eq!((damage.days, damage.clicks), (1, 0));
    let kept = database.sql("select counts from click_days_damaged");
    assert_eq!(kept.unwrap(), "\\xff");
}
