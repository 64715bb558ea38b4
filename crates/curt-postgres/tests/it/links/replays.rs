//! L-1 for repeated requests: what PostgreSQL shows after a crash may be on no standby yet.

use std::time::Duration;

use curt_core::ErrorKind;
use curt_core::ports::RequestToken;
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::Pair;
use curt_testkit::need;
use curt_testkit::sample::{id, link};
use tokio::task::spawn_blocking;

use crate::links::world::{AWAY_MAX, Links, create, create_until_answered};

/// Waits a second for a statement, so that the test need not wait longer.
fn open_impatient(url: &str) -> Links {
    let settings = PostgresSettings {
        connect_timeout: Duration::from_secs(10),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(1))
    };
    Postgres::open(url, &settings).unwrap().links()
}

async fn wait_until_there(links: &Links, key: &str) {
    let look = async {
        while !matches!(links.get(&id(key)).await, Ok(Some(_))) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(AWAY_MAX, look).await.unwrap();
}

/// A standby is dead, so creates are stuck: committed by the primary, acknowledged to nobody. The primary crashes and
/// shows them when it is back. To repeat such a create must not acknowledge it before a standby has it.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_answer_waits_for_the_standby_as_the_first_one_does_l1() {
    let mut pair = need!(Pair::start());
    pair.make_synchronous().unwrap();
    let links = open_impatient(&pair.url("postgres"));
    create_until_answered(&links, "before").await;

    pair.kill_standby().unwrap();
    let token = Some(RequestToken([1; 16]));
    let insert = links.insert_if_absent(vec![link("stuck")], token);
    let stuck = insert.await.unwrap_err();
    assert_eq!(stuck.kind, ErrorKind::Timeout, "{stuck:?}");
    let mut pair = spawn_blocking(move || {
        pair.kill_primary().unwrap();
        pair.restart_primary().unwrap();
        pair
    })
    .await
    .unwrap();
    wait_until_there(&links, "stuck").await;
    for _ in 0..2 {
        for again in ["stuck", "before"] {
            let error = create(&links, again).await.unwrap_err();
            assert!(error.is_transient(), "{error:?}");
        }
    }

    let mut pair = spawn_blocking(move || {
        pair.restart_standby().unwrap();
        pair
    })
    .await
    .unwrap();
    for again in ["stuck", "before"] {
        assert_eq!(create_until_answered(&links, again).await, id(again));
    }

    let pair = spawn_blocking(move || {
        pair.kill_primary().unwrap();
        pair.promote().unwrap();
        pair
    })
    .await
    .unwrap();
    for acknowledged in ["before", "stuck"] {
        wait_until_there(&links, acknowledged).await;
    }
    drop(pair);
}
