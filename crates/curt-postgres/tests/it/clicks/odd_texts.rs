//! Texts that PostgreSQL does not take.

use curt_core::ports::{ClickFilter, ClickQuery, ClickWindow};
use curt_core::{Click, ClickOutcome, ClickSubject, OwnerId, UnixMillis};
use curt_testkit::engines::postgres::shared;
use curt_testkit::need;
use curt_testkit::sample::NOW;

use crate::clicks::world::{click, counted, one_click, open, stream, total};

/// Whoever sends one must not keep the clicks of everybody from being counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_nul_is_counted_like_any_other_sign() {
    let server = need!(shared());
    let database = server.database("nul").unwrap();
    let clicks = open(&database.url());
    let odd_tag = ClickSubject::tag(OwnerId(1), "a\0b");
    let mut day = counted(odd_tag.clone());
    day.rollups[0].value = "hu\0man".into();
    let odd = Click {
        outcome: ClickOutcome::Absent("a\0b".into()),
        owner: None,
        tags: vec!["c\0".into()],
        referrer: "\0".into(),
        ..click("x", NOW)
    };
    let flush = ClickWindow {
        days: vec![day].into(),
        blocks: Vec::new(),
        ..one_click(1, 0)
    }
    .with_clicks(std::slice::from_ref(&odd));
    assert!(clicks.apply(flush).await.unwrap());
    assert_eq!(clicks.offset(stream(1)).await.unwrap(), 1);
    assert_eq!(total(&clicks, &odd_tag).await, 1);
    let query = ClickQuery {
        subject: ClickSubject::Orphans,
        from: UnixMillis(0),
        before: UnixMillis::MAX,
        filter: ClickFilter::default(),
        cursor: None,
        limit: 9,
    };
    assert_eq!(clicks.clicks(&query).await.unwrap().clicks, [odd]);
}
