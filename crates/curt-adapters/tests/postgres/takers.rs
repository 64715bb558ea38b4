//! A3: many takers share a ledger.

use curt_testkit::engines::postgres::shared;
use curt_testkit::need;

use crate::world::{FORMS, assert_complete, drain, length, mint, open_wide};

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_takers_share_the_keys_k3() {
    let server = need!(shared());
    let count = length(20_000, 500_000);
    for form in FORMS {
        let database = server.database("takers").unwrap();
        let ledger = open_wide(&database.url(), 64).ledger(form);
        mint(&ledger, count).await;
        let taken = drain(&ledger, 64, 70).await;
        assert_complete(&taken, count, 70);
        let counts = ledger.counts().await.unwrap();
        assert_eq!((counts.free, counts.open), (0, count as u64), "{form:?}");
    }
}
