//! One of four nodes is away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::ports::{
    Idempotency, LinkHomes, LinkIndex, LinkStore, LinkTotals, ListQuery, RequestToken, SeededLinks,
};
use curt_core::{ErrorKind, Link, LinkId, Revision, ShardId, UnixMillis};
use curt_shards::ShardRouter;
use curt_testkit::engines::postgres::{Server, shared};
use curt_testkit::need;
use curt_testkit::sample::{NOW, SampleWrites, id, later, link};

use crate::nodes::{MODULO, in_databases};

/// By modulo, node 3 is the dead one.
fn is_dead(id: &LinkId) -> bool {
    ShardId::of(id).number() % 4 == 3
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_node_costs_its_own_links_only() {
    let server = need!(shared());
    let mut doomed = need!(Server::start());
    let databases = [0; 3].map(|_| server.database("shard").unwrap());
    let mut urls: Vec<String> = databases.iter().map(|database| database.url()).collect();
    doomed.sql("create database shard").unwrap();
    urls.push(doomed.url("shard"));
    let router = in_databases(&urls, MODULO);
    let ids: Vec<LinkId> = (0..80).map(|n| id(&format!("k{n:02}"))).collect();
    let links = ids.iter().map(|id| link(id.key.as_str()));
    router.insert(links.collect()).await.unwrap();
    let page = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let first = router.list(&page).await.unwrap();
    assert_eq!(first.links.len(), 10);

    assert!(ids.iter().all(|id| router.is_home(id)));

    doomed.kill().unwrap();
    for id in &ids {
        let begun = Instant::now();
        let read = router.get(id).await;
        match is_dead(id) {
            true => {
                let error = read.unwrap_err();
                assert!(error.is_transient(), "{error:?}");
                assert!(error.detail.contains("links node 3"), "{error}");
                assert!(
                    begun.elapsed() < Duration::from_secs(2),
                    "{:?}",
                    begun.elapsed()
                );
            }
            false => assert_eq!(read.unwrap(), Some(link(id.key.as_str()))),
        }
    }
    // Nobody may take a list, or totals, for whole that are not.
    let second = ListQuery {
        cursor: first.next,
        ..page
    };
    for failed in [
        router.list(&second).await.unwrap_err(),
        router.counts().await.unwrap_err(),
    ] {
        assert!(failed.is_transient(), "{failed:?}");
        assert!(failed.detail.contains("links node 3"), "{failed}");
    }
    check_each(&router).await;
    // Some of these were inserted: their keys are not free.
    let bulk = (0..20).map(|n| link(&format!("bulk{n}"))).collect();
    assert_eq!(
        router.insert(bulk).await.unwrap_err().kind,
        ErrorKind::Timeout
    );
    let alone = (0..).map(|n| format!("alone{n}"));
    let mut alone = alone.filter(|key| is_dead(&id(key)));
    let dead = link(&alone.next().unwrap());
    let refused = router.insert(vec![dead]).await.unwrap_err();
    assert!(refused.is_transient(), "{refused:?}");
    // New links get keys of the others.
    let homes = ids.iter().filter(|id| router.is_home(id));
    let expected = ids.iter().filter(|id| !is_dead(id));
    assert!(homes.eq(expected), "a dead node is written to");

    check_background(&router).await;
}

/// Each link has its own outcome, twice: the second time its request made those of the others before.
async fn check_each(router: &ShardRouter) {
    let token = Some(RequestToken([7; 16]));
    let keys: Vec<String> = (0..20).map(|n| format!("each{n}")).collect();
    for is_repeated in [false, true] {
        let links = keys.iter().map(|key| link(key)).collect();
        let outcomes = router.insert_each(links, token).await.unwrap();
        for (key, outcome) in keys.iter().zip(&outcomes) {
            match outcome {
                Err(error) => {
                    assert!(is_dead(&id(key)) && error.is_transient(), "{error:?}");
                    assert!(error.detail.contains("links node 3"), "{error}");
                }
                Ok(inserted) => {
                    assert!(!is_dead(&id(key)), "{key}: {inserted:?}");
                    assert!(inserted.is_made(), "{key}: {inserted:?}");
                    assert_eq!(inserted.is_created(), !is_repeated, "{key}");
                }
            }
        }
        let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        assert!(failed > 0 && failed < outcomes.len(), "{failed}");
    }
}

async fn check_background(router: &Arc<ShardRouter>) {
    // What nobody waits for goes on with the others.
    router.ping().await.unwrap();
    router.ping_reads().await.unwrap();
    assert!(router.ended(NOW, 10).await.unwrap().is_empty());
    assert!(router.release(UnixMillis(0), 10).await.unwrap().is_empty());
    assert_eq!(router.forget_before(later(0), 10).await.unwrap(), 0);
    assert!(router.claim(vec![link("x")]).await.unwrap().is_empty());
    let health = router.check_nodes().await.unwrap();
    let answers: Vec<bool> = health.iter().map(|node| node.answer.is_ok()).collect();
    assert_eq!(answers, [true, true, true, false]);
    check_purge(router).await;
}

/// Each node is purged by itself.
async fn check_purge(router: &Arc<ShardRouter>) {
    let due = NOW.plus(Duration::from_secs(60));
    let keys: Vec<String> = (0..24).map(|n| format!("due{n}")).collect();
    let keys: Vec<&String> = keys.iter().filter(|key| !is_dead(&id(key))).collect();
    let links = keys.iter().map(|key| Link {
        expires_at: Some(NOW),
        ..link(key)
    });
    router.insert(links.collect()).await.unwrap();
    let mut purged = Vec::new();
    for (node, index) in router.node_indexes().into_iter().enumerate() {
        let ended = index.ended(due, 100).await;
        if node == 3 {
            let error = ended.unwrap_err();
            assert!(error.detail.contains("links node 3"), "{error}");
            continue;
        }
        let ended = ended.unwrap();
        assert!(!ended.is_empty(), "node {node} has none");
        let of_node = |(id, _): &(LinkId, _)| usize::from(ShardId::of(id).number() % 4) == node;
        assert!(ended.iter().all(of_node), "{ended:?}");
        // A link that another node has is left to it.
        let other = (
            id(keys
                .iter()
                .find(|key| !of_node(&(id(key), Revision::FIRST)))
                .unwrap()),
            Revision::FIRST,
        );
        let batch: Vec<_> = ended.iter().cloned().chain([other]).collect();
        let changes = index.purge(&batch, due, due).await.unwrap();
        assert_eq!(changes.len(), ended.len());
        purged.extend(changes);
    }
    assert_eq!(purged.len(), keys.len());
}
