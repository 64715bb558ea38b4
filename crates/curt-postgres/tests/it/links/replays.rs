//! L-1 for repeated requests: what PostgreSQL shows after a crash may be on no standby yet.

use std::time::Duration;

use curt_core::ErrorKind;
use curt_core::ports::{ClaimReply, InsertReply};
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::Pair;
use curt_testkit::need;
use curt_testkit::sample::{id, link, once, replay, request_once};
use tokio::task::spawn_blocking;

use crate::links::world::{AWAY_MAX, Links, insert_until_answered};

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
    let named = |key: &str| request_once(vec![link(key)], once(key, 1));
    insert_until_answered(&links, named("before")).await;
    links.seed(&[id("seed")]).await.unwrap();

    pair.kill_standby().unwrap();
    let stuck = links.insert(named("stuck")).await.unwrap_err();
    assert_eq!(stuck.kind, ErrorKind::Timeout, "{stuck:?}");
    let stuck = links.claim(named("claim")).await.unwrap_err();
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
            let error = links.insert(named(again)).await.unwrap_err();
            assert!(error.is_transient(), "{error:?}");
        }
        let error = links.claim(named("claim")).await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
    }

    let mut pair = spawn_blocking(move || {
        pair.restart_standby().unwrap();
        pair
    })
    .await
    .unwrap();
    let again = insert_until_answered(&links, named("stuck")).await;
    assert_eq!(again, [id("stuck")]);
    let reply = links.insert(named("before")).await.unwrap();
    let want = replay(vec![Some(id("before"))]);
    assert_eq!(reply, InsertReply::Replayed(want));
    let reply = links.claim(named("claim")).await.unwrap();
    let want = replay(vec![Some(id("seed"))]);
    assert_eq!(reply, ClaimReply::Replayed(want));

    let pair = spawn_blocking(move || {
        pair.kill_primary().unwrap();
        pair.promote().unwrap();
        pair
    })
    .await
    .unwrap();
    for acknowledged in ["before", "stuck", "seed"] {
        wait_until_there(&links, acknowledged).await;
    }
    drop(pair);
}
