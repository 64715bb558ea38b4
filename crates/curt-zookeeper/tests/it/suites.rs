//! The ZooKeeper adapter against the suites of its ports.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use curt_core::ErrorKind;
use curt_testkit::conformance::TestTime;
use curt_testkit::conformance::heartbeats::Lookers;
use curt_testkit::conformance::leases::Holders;
use curt_testkit::engines::unique;
use curt_testkit::engines::zookeeper::{Ensemble, shared};
use curt_testkit::need;
use curt_zookeeper::{ZooKeeper, ZooKeeperSettings};

const TTL: Duration = Duration::from_secs(60);

fn open(address: &str) -> Arc<ZooKeeper> {
    ZooKeeper::open(address, ZooKeeperSettings::default()).unwrap()
}

/// An address with a path that nobody else uses.
fn apart(servers: &Ensemble, account: &str) -> String {
    let (servers, path) = (servers.addresses(), unique("test"));
    format!("zookeeper://{account}{servers}/{path}/below")
}

curt_testkit::shard_map_tests!({
    let servers = need!(shared());
    let zookeeper = open(&apart(&servers, ""));
    (servers, zookeeper.shard_maps())
});

/// Two holders, each with a session of its own, below a path of their own.
fn two_sessions(address: &str) -> Holders {
    Holders {
        first: open(address).leases("first"),
        second: open(address).leases("second"),
        time: TestTime::Real,
    }
}

/// Both holders are tasks of one process, and share its session.
fn one_session(address: &str) -> Holders {
    let zookeeper = open(address);
    Holders {
        first: zookeeper.leases("first"),
        second: zookeeper.leases("second"),
        time: TestTime::Real,
    }
}

fn lookers(address: &str) -> Lookers {
    Lookers {
        first: open(address).heartbeats(),
        second: open(address).heartbeats(),
    }
}

/// What `$open` opens below a path of its own.
macro_rules! fresh {
    ($open:expr) => {{
        let servers = need!(shared());
        let opened = $open(&apart(&servers, ""));
        (servers, opened)
    }};
}

curt_testkit::leases_tests!(fresh!(two_sessions));
mod within_one_session {
    use super::*;
    curt_testkit::leases_tests!(fresh!(one_session));
}
curt_testkit::heartbeats_tests!(fresh!(lookers));
curt_testkit::cursor_tests!(fresh!(|address: &str| open(address).cursor()));
curt_testkit::reopening_tests!(
    {
        let servers = need!(shared());
        let address = apart(&servers, "");
        (servers, "", async move |_: &Path| open(&address).cursor())
    },
    cursor,
    survives_reopening
);

/// Without anything that it says itself, as after a kill.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_leaves_the_registry_with_its_session() {
    let servers = need!(shared());
    let address = apart(&servers, "");
    let (left, stays) = (open(&address), open(&address));
    left.heartbeats().beat("left", "x", TTL).await.unwrap();
    stays.heartbeats().beat("stays", "y", TTL).await.unwrap();
    assert_eq!(stays.heartbeats().records().await.unwrap().len(), 2);
    drop(left);
    let gone = async {
        while stays.heartbeats().records().await.unwrap().len() > 1 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let timeout = ZooKeeperSettings::default().session_timeout * 2;
    tokio::time::timeout(timeout, gone).await.unwrap();
    assert_eq!(
        &*stays.heartbeats().records().await.unwrap()[0].instance,
        "stays"
    );
}

/// The documented place, and what an operator reads there.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_lies_where_its_name_says() {
    let servers = need!(shared());
    let address = apart(&servers, "");
    let leases = open(&address).leases("keygen at host-1");
    let name = "shard-locks/keys-db-0";
    let lease = leases.acquire(name, TTL).await.unwrap().unwrap();
    let path = address.split_once("/below").unwrap().0;
    let path = path.rsplit_once('/').unwrap().1;
    let client = zookeeper_client::Client::connect(&servers.addresses())
        .await
        .unwrap();
    let node = format!("/{path}/below/shard-locks/keys-db-0");
    let (data, stat) = client.get_data(&node).await.unwrap();
    let text = format!("{} keygen at host-1", lease.token);
    assert_eq!(String::from_utf8(data).unwrap(), text);
    assert_eq!(stat.czxid.unsigned_abs(), lease.fencing_token);
    assert_ne!(stat.ephemeral_owner, 0, "it ends with the session");
    assert!(leases.renew(&lease, TTL).await.unwrap());
    client.delete(&node, None).await.unwrap();
    assert!(!leases.renew(&lease, TTL).await.unwrap(), "taken away");
    let lease = leases.acquire(name, TTL).await.unwrap().unwrap();
    leases.release(lease).await.unwrap();
    assert_eq!(client.check_stat(&node).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accounts_nodes_are_its_own() {
    let servers = need!(shared());
    let address = apart(&servers, "curt:secret@");
    let cursor = open(&address).cursor();
    assert!(cursor.advance("a", 0, 7).await.unwrap());
    let stranger = open(&address.replace("secret", "wrong")).cursor();
    let error = stranger.get("a").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
    assert_eq!(open(&address).cursor().get("a").await.unwrap(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_a_number_is_damage() {
    let servers = need!(shared());
    let address = apart(&servers, "");
    let zookeeper = open(&address);
    assert!(zookeeper.cursor().advance("a", 0, 7).await.unwrap());
    let path = address.rsplit_once(':').unwrap().1;
    let path = path.split_once('/').unwrap().1;
    let client = zookeeper_client::Client::connect(&servers.addresses())
        .await
        .unwrap();
    let node = format!("/{path}/cursors/a");
    client.set_data(&node, b"seven", None).await.unwrap();
    let read = zookeeper.cursor().get("a").await.unwrap_err();
    let moved = zookeeper.cursor().advance("a", 7, 8).await.unwrap_err();
    assert_eq!(
        (read.kind, moved.kind),
        (ErrorKind::Corrupt, ErrorKind::Corrupt)
    );
}
