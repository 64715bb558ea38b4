//! Look-ups at a standby while the primary is dead: what it has not applied yet is never taken for absent, nor is what
//! it shows for the last word.

use std::time::Duration;

use curt_core::{ErrorKind, LinkState};
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::Pair;
use curt_testkit::need;
use curt_testkit::sample::{NOW, SampleWrites, id, link};
use tokio::task::spawn_blocking;

use crate::links::world::{AWAY_MAX, Links};

/// A short deadline, so that look-ups which cannot be answered end soon.
fn open(url: &str) -> Links {
    let settings = PostgresSettings {
        lookup_timeout: Duration::from_secs(2),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(30))
    };
    Postgres::open(url, &settings).unwrap().links()
}

async fn state_of(links: &Links, key: &str) -> LinkState {
    let look = async {
        loop {
            match links.get(&id(key)).await {
                Ok(Some(link)) => return link.state,
                Ok(None) => panic!("{key} was taken for absent"),
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
        }
    };
    tokio::time::timeout(AWAY_MAX, look).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_believed_when_it_has_applied_what_it_received_l2() {
    let mut pair = need!(Pair::start());
    pair.make_synchronous().unwrap();
    let links = open(&pair.url("postgres"));
    let stored = vec![link("kept"), link("deleted")];
    links.insert(stored).await.unwrap();
    links.ping_reads().await.unwrap();
    pair.wait_until_followed().unwrap();

    pair.standby().sql("select pg_wal_replay_pause()").unwrap();
    // Both are acknowledged: the standby has them on its disk.
    links.insert(vec![link("late")]).await.unwrap();
    links.delete(&id("deleted"), NOW).await.unwrap();
    let pair = spawn_blocking(move || {
        pair.kill_primary().unwrap();
        pair
    })
    .await
    .unwrap();
    for key in ["kept", "late", "deleted"] {
        let error = links.get(&id(key)).await.unwrap_err();
        assert!(error.is_transient(), "{key}: {error:?}");
    }

    pair.standby().sql("select pg_wal_replay_resume()").unwrap();
    assert_eq!(state_of(&links, "kept").await, LinkState::Active);
    assert_eq!(state_of(&links, "late").await, LinkState::Active);
    assert_eq!(state_of(&links, "deleted").await, LinkState::Tombstone);
    links.ping_reads().await.unwrap();
    // It may have been on its way.
    let missing = links.get(&id("never")).await.unwrap_err();
    assert_eq!(missing.kind, ErrorKind::Unavailable, "{missing:?}");
    let refused = links.insert(vec![link("new")]).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unavailable, "{refused:?}");

    let _pair = spawn_blocking(move || {
        let mut pair = pair;
        pair.promote().unwrap();
        pair
    })
    .await
    .unwrap();
    let look = async {
        while links.get(&id("never")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(AWAY_MAX, look).await.unwrap();
    assert_eq!(links.get(&id("never")).await.unwrap(), None);
}
