//! Pre-seeded rows under many claimers and bad plans.

use std::sync::Arc;

use curt_core::{KeyOrigin, Link, LinkId, LinkState, OwnerId, Revision};
use curt_testkit::engines::postgres::shared;
use curt_testkit::need;
use curt_testkit::sample::{NOW, SampleWrites, full_link, id, link};
use tokio::task::JoinSet;

use crate::links::world::{Links, assert_distinct, open};

fn wish(n: usize) -> Link {
    Link {
        origin: KeyOrigin::Claim,
        ..link(&format!("wish{n}"))
    }
}

async fn seed(links: &Links, count: usize) {
    let ids: Vec<LinkId> = (0..count).map(|n| id(&format!("seed{n:06}"))).collect();
    for part in ids.chunks(1_000) {
        assert_eq!(links.seed(part).await.unwrap(), part.len() as u64);
    }
}

async fn claim(links: &Links, wishes: Vec<Link>) -> Vec<LinkId> {
    let claimed = links.claim(wishes).await.unwrap();
    claimed.into_iter().map(|link| link.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn claimers_never_share_a_row_k1() {
    let server = need!(shared());
    let database = server.database("claims").unwrap();
    let processes = [open(&database.url()), open(&database.url())];
    let (claimers, each) = (64, 30);
    seed(&processes[0], claimers * each).await;
    let mut work = JoinSet::new();
    for n in 0..claimers {
        let links = Arc::clone(&processes[n % 2]);
        work.spawn(async move {
            let mut claimed = Vec::new();
            for k in 0..each {
                claimed.extend(claim(&links, vec![wish(k)]).await);
            }
            claimed
        });
    }
    let mut claimed: Vec<LinkId> = work.join_all().await.into_iter().flatten().collect();
    // A claim passes over rows that another one is looking at, and may find none of the last few.
    let missed = claimers * each - claimed.len();
    assert!(missed <= claimers, "{missed} of the last seeds were missed");
    claimed.extend(claim(&processes[0], (0..missed).map(wish).collect()).await);
    assert_distinct(&claimed);
    assert_eq!(claimed.len(), claimers * each);
    let counts = processes[1].counts().await.unwrap();
    assert_eq!((counts.seeded, counts.live), (0, claimed.len() as u64));
}

/// Plans that run a LIMIT more than once, as they come with old statistics, give nobody more rows than wanted.
#[tokio::test(flavor = "multi_thread")]
async fn no_plan_claims_more_than_wanted_k3() {
    let server = need!(shared());
    for off in ["hashjoin", "mergejoin", "nestloop", "indexscan", "material"] {
        let database = server.database("plans").unwrap();
        let url = format!("{}?options=-c%20enable_{off}%3Doff", database.url());
        let links = open(&url);
        seed(&links, 2_000).await;
        for wanted in [1_usize, 7, 100] {
            let wishes: Vec<Link> = (0..wanted).map(wish).collect();
            let claimed = claim(&links, wishes).await;
            assert_eq!(claimed.len(), wanted, "without {off}");
        }
        let left = database.sql("select count(*) from links where state = 3");
        assert_eq!(left.unwrap(), (2_000 - 108).to_string(), "without {off}");
    }
}

/// A row that had an owner, as it is when it is seeded by hand from an expired link: nothing of the owner is left.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_former_owner_is_left() {
    let server = need!(shared());
    let database = server.database("former").unwrap();
    let links = open(&database.url());
    let former = Link {
        state: LinkState::Active,
        revision: Revision::FIRST,
        ..full_link("reused")
    };
    links.insert(vec![former]).await.unwrap();
    database
        .sql("update links set state = 3, seed_bucket = 7 where key = 'reused'")
        .unwrap();
    let plain = Link {
        owner: OwnerId(5),
        ..wish(0)
    };
    let claimed = claim(&links, vec![plain.clone()]).await;
    assert_eq!(claimed, [id("reused")]);
    let want = Link {
        id: id("reused"),
        revision: Revision {
            generation: 2,
            version: 1,
        },
        ..plain
    };
    assert_eq!(links.get(&id("reused")).await.unwrap(), Some(want));
    let old = "select was_permanent, seed_bucket is null from links where key = 'reused'";
    assert_eq!(database.sql(old).unwrap(), "f|t");
    assert_eq!(links.ended(NOW, 10).await.unwrap(), vec![]);
}
