//! The ledger against the bare statements that it is made of, on one server, in turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::ports::LedgerForm;
use curt_core::{Key, placement};
use curt_testkit::engines::postgres::{Database, SYNCED, Server};
use curt_testkit::length::{is_full, length};
use curt_testkit::need;
use curt_testkit::sample::{NOW, batch, key};
use tokio_postgres::Statement;

use super::ALONE;
use crate::ledger::world::{Ledger, connect, open};

const MINTED_AT_ONCE: usize = 5_000;
const TAKEN_AT_ONCE: usize = 1_000;
const BATCHES_IN_A_PASS: usize = 10;
const SHAPES: usize = 3;
/// Of the bare statements' rate.
const RATIO_MIN: f64 = 0.7;

/// The documented statement, in the shape that keeps to its limit.
const DOCUMENTED: &str = "with picked as materialized (select id from bare where status = 0 order by id limit 1000 \
    for update skip locked) delete from bare using picked where bare.id = picked.id and bare.status = 0 \
    returning bare.key";
/// Without the join, for which the planner may read the whole table every time.
const WITHOUT_JOIN: &str = "with picked as materialized (select id from bare where status = 0 order by id limit 1000 \
    for update skip locked) delete from bare where status = 0 and id = any (array(select id from picked)) \
    returning key";

/// The shape that the ledger uses.
const BY_PLACE: &str = "with picked as materialized (select ctid from bare where status = 0 order by id limit 1000 \
    for update skip locked) delete from bare where status = 0 and ctid = any (array(select ctid from picked)) \
    returning key";

/// The same table and indexes, without anything around them.
async fn bare(database: &Database) -> tokio_postgres::Client {
    let client = connect(database).await;
    client
        .batch_execute("create table bare (like keys including all)")
        .await
        .unwrap();
    client
}

/// Keys as they are minted: neighbours in time are not neighbours in the alphabet.
fn scattered(round: usize) -> Vec<Key> {
    let scatter = |n: usize| key(&format!("{:016x}", placement::hash(&n.to_le_bytes())));
    (0..MINTED_AT_ONCE)
        .map(|n| scatter(round * MINTED_AT_ONCE + n))
        .collect()
}

/// What each round took.
#[derive(Default)]
struct Times {
    ours: Vec<Duration>,
    bare: Vec<Duration>,
}

impl Times {
    /// Our rate over the bare one, by the middle round of each: a machine that is busy for a moment spoils only a few.
    fn ratio(&self) -> f64 {
        middle(&self.bare).as_secs_f64() / middle(&self.ours).as_secs_f64()
    }

    fn per_second(&self, keys: usize) -> f64 {
        keys as f64 / middle(&self.ours).as_secs_f64()
    }
}

fn middle(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() / 2]
}

async fn mint(ledger: &Ledger, client: &tokio_postgres::Client, rounds: usize) -> Times {
    let insert =
        "insert into bare (key) select key from unnest($1::text[]) key on conflict do nothing";
    let insert = client.prepare(insert).await.unwrap();
    let mut times = Times::default();
    for round in 0..rounds {
        let part = scattered(round);
        let started = Instant::now();
        ledger.insert(&part).await.unwrap();
        times.ours.push(started.elapsed());
        let texts: Vec<&str> = part.iter().map(Key::as_str).collect();
        let started = Instant::now();
        client.execute(&insert, &[&texts]).await.unwrap();
        times.bare.push(started.elapsed());
    }
    times
}

/// A pass of keysync: batches that are taken one by one, and closed at once.
async fn our_pass(ledger: &Ledger, pass: usize) -> Duration {
    let names = (0..BATCHES_IN_A_PASS).map(|n| batch(&format!("{pass}-{n}")));
    let names: Vec<_> = names.collect();
    let started = Instant::now();
    for name in &names {
        let taken = ledger.take(name, TAKEN_AT_ONCE, NOW).await.unwrap();
        assert_eq!(taken.len(), TAKEN_AT_ONCE);
    }
    ledger.close(&names).await.unwrap();
    started.elapsed()
}

async fn bare_pass(client: &tokio_postgres::Client, take: &Statement) -> Duration {
    let started = Instant::now();
    for _ in 0..BATCHES_IN_A_PASS {
        let rows = client.query(take, &[]).await.unwrap();
        assert_eq!(rows.len(), TAKEN_AT_ONCE);
    }
    started.elapsed()
}

async fn take(
    ledger: &Ledger,
    client: &tokio_postgres::Client,
    bare: &str,
    passes: usize,
) -> Times {
    let take = client.prepare(bare).await.unwrap();
    let mut times = Times::default();
    for pass in 0..passes {
        times.ours.push(our_pass(ledger, pass).await);
        times.bare.push(bare_pass(client, &take).await);
    }
    times
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_is_nearly_as_fast_as_its_bare_statements() {
    let _alone = ALONE.lock().await;
    let server = Arc::new(need!(Server::start_with(&[SYNCED])));
    let database = server.database("throughput").unwrap();
    let ledger = open(&database.url()).ledger(LedgerForm::Delete);
    ledger.counts().await.unwrap();
    let client = bare(&database).await;
    let rounds = length(12, 100);
    let minting = mint(&ledger, &client, rounds).await;
    database.sql("analyze bare; analyze keys").unwrap();
    println!(
        "minted {:.0} keys/s, {:.2} of bare",
        minting.per_second(MINTED_AT_ONCE),
        minting.ratio()
    );
    let passes = rounds * MINTED_AT_ONCE / (SHAPES * BATCHES_IN_A_PASS * TAKEN_AT_ONCE);
    let [documented, without_join, by_place] = [
        take(&ledger, &client, DOCUMENTED, passes).await,
        take(&ledger, &client, WITHOUT_JOIN, passes).await,
        take(&ledger, &client, BY_PLACE, passes).await,
    ];
    println!(
        "taken {:.0} keys/s, {:.2} of the documented statement, {:.2} of it without a join, {:.2} of our own shape of it \
         without a record of the batch",
        without_join.per_second(BATCHES_IN_A_PASS * TAKEN_AT_ONCE),
        documented.ratio(),
        without_join.ratio(),
        by_place.ratio(),
    );
    let taking = documented.ratio().min(without_join.ratio());
    for (what, ratio) in [("minting", minting.ratio()), ("taking", taking)] {
        // Times are judged where no other work spoils them.
        assert!(ratio >= RATIO_MIN || !is_full(), "{what}: {ratio:.2}");
    }
}
