//! Tables that several processes make.

use curt_dynamodb::DynamoDb;
use curt_testkit::engines::{dynamodb, unique};
use curt_testkit::need;

use crate::world::settings;

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_many_make_at_once_are_there_for_all() {
    let url = need!(dynamodb::shared()).url(&unique("test"));
    let open = || DynamoDb::open(&url, &settings()).unwrap();
    assert_eq!(open().pending().await.unwrap().len(), 1);
    let made = (0..8).map(|number| {
        let database = open();
        tokio::spawn(async move {
            database.migrate().await.unwrap();
            let cursor = database.cursor();
            cursor.advance(&format!("by {number}"), 0, 1).await.unwrap()
        })
    });
    for made in made.collect::<Vec<_>>() {
        assert!(made.await.unwrap(), "the tables cannot be used");
    }
    assert!(open().pending().await.unwrap().is_empty());
    assert_eq!(open().cursor().get("by 7").await.unwrap(), 1);
}
