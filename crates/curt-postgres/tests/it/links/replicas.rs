//! Look-ups at a replica that does not follow, or follows late: no link is missed because it is new, and nothing is older
//! than the settings allow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::{Link, LinkState, Target};
use curt_postgres::{Postgres, PostgresSettings, ReadFrom};
use curt_testkit::engines::postgres::Pair;
use curt_testkit::need;
use curt_testkit::sample::{NOW, SampleWrites, id, link};
use futures_util::future::join_all;

use crate::links::world::{AWAY_MAX, Links, open, settings};

const LAG_MAX: Duration = Duration::from_millis(600);

struct Reader {
    database: Postgres,
    links: Links,
}

impl Reader {
    fn open(url: &str) -> Self {
        let settings = PostgresSettings {
            read_from: ReadFrom::Replica,
            replica_lag_max: LAG_MAX,
            ..settings()
        };
        let database = Postgres::open(url, &settings).unwrap();
        let links = database.links();
        Self { database, links }
    }

    /// Look-ups that the replica answered.
    fn replica_reads(&self) -> u64 {
        let hosts = self.database.host_reads().into_iter();
        hosts
            .filter(|host| !host.is_leader)
            .map(|host| host.reads)
            .sum()
    }

    async fn read(&self, key: &str) -> Option<Link> {
        self.links.get_nearby(&id(key)).await.unwrap()
    }

    /// Reads until the replica is the one that answers.
    async fn await_replica(&self, key: &str) {
        let before = self.replica_reads();
        let answered = async {
            while self.replica_reads() == before {
                assert!(self.read(key).await.is_some(), "{key} was missed");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(AWAY_MAX, answered).await.unwrap();
    }
}

fn target(number: usize) -> Target {
    Target::from_serialised(format!("https://example.com/{number}")).unwrap()
}

/// Creates, edits and deletes at one server while another one reads at the replica, for a while.
async fn assert_never_missed_nor_old(writer: &Links, reader: &Reader, round: &str, steps: usize) {
    // When each edit of the one link was acknowledged.
    let mut acknowledged: Vec<Instant> = Vec::new();
    let edited = format!("{round}-edited");
    writer.insert(vec![link(&edited)]).await.unwrap();
    for step in 0..steps {
        let new = format!("{round}-{step}");
        writer.insert(vec![link(&new)]).await.unwrap();
        assert!(reader.read(&new).await.is_some(), "{new} was missed");
        let seen = writer.get(&id(&edited)).await.unwrap().unwrap();
        let wanted = Link {
            target: target(step),
            ..seen.clone()
        };
        writer.update_at(wanted, seen.revision).await.unwrap();
        acknowledged.push(Instant::now());
        let begun = Instant::now();
        let shown = reader.read(&edited).await.unwrap().target;
        let must_show = acknowledged.iter().rposition(|at| *at + LAG_MAX < begun);
        let shown = (0..=step).rev().find(|number| target(*number) == shown);
        assert!(
            shown >= must_show,
            "{round}: shows edit {shown:?}, and {must_show:?} was made {LAG_MAX:?} ago"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stands_still_or_is_late_hides_no_new_link_and_shows_nothing_too_old_l2() {
    let pair = need!(Pair::start());
    let (writer, reader) = (
        open(&pair.url("postgres")),
        Reader::open(&pair.url("postgres")),
    );
    let known = vec![link("kept"), link("deleted"), link("own")];
    writer.insert(known).await.unwrap();
    pair.wait_until_followed().unwrap();
    reader.await_replica("kept").await;
    assert_never_missed_nor_old(&writer, &reader, "followed", 30).await;

    // A write of the reader's own is seen at once, though the replica does not have it.
    reader.await_replica("own").await;
    pair.standby().sql("select pg_wal_replay_pause()").unwrap();
    reader.links.delete(&id("own"), NOW).await.unwrap();
    assert_eq!(
        reader.read("own").await.unwrap().state,
        LinkState::Tombstone
    );
    writer.delete(&id("deleted"), NOW).await.unwrap();
    let deleted_at = Instant::now();
    assert_never_missed_nor_old(&writer, &reader, "paused", 100).await;
    let rest =
        (deleted_at + LAG_MAX + Duration::from_millis(1)).saturating_duration_since(Instant::now());
    tokio::time::sleep(rest).await;
    let deleted = reader.read("deleted").await.unwrap();
    assert_eq!(deleted.state, LinkState::Tombstone);
    assert_eq!(reader.read("never").await, None);
    let lag = reader
        .database
        .host_reads()
        .into_iter()
        .map(|host| host.lag);
    assert!(lag.max().unwrap() > LAG_MAX, "the lag is told");
    pair.standby().sql("select pg_wal_replay_resume()").unwrap();
    reader.await_replica("kept").await;

    // Less late than is allowed, and later.
    for delay in ["200ms", "3s"] {
        let late = format!("alter system set recovery_min_apply_delay = '{delay}'");
        pair.standby().sql(&late).unwrap();
        pair.standby().sql("select pg_reload_conf()").unwrap();
        assert_never_missed_nor_old(&writer, &reader, delay, 60).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_of_unknown_keys_gets_a_share_of_the_leader() {
    let pair = need!(Pair::start());
    open(&pair.url("postgres"))
        .insert(vec![link("kept")])
        .await
        .unwrap();
    pair.wait_until_followed().unwrap();
    let url = pair.url("postgres") + "&application_name=scan";
    let reader = Arc::new(Reader::open(&url));
    reader.await_replica("kept").await;
    let connections = || {
        let count = "select count(*) from pg_stat_activity where application_name = 'scan'";
        pair.primary().sql(count).unwrap().parse::<usize>().unwrap()
    };
    let before = connections();
    for round in 0..5 {
        let keys: Vec<String> = (0..64).map(|n| format!("unknown-{round}-{n}")).collect();
        let found = join_all(keys.iter().map(|key| reader.read(key))).await;
        assert!(found.iter().all(Option::is_none));
    }
    // A quarter of 8, of which one may have been there.
    let added = connections() - before;
    assert!(added <= 2, "{added} connections for unknown keys");
    let known = (0..64).map(|_| reader.read("kept"));
    assert!(join_all(known).await.iter().all(Option::is_some));
}
