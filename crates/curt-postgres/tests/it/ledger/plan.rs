//! K-3 under a plan that runs the LIMIT again for every row that it joins.

use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::need;

use crate::ledger::world::{FORMS, assert_complete, drain, mint, open_wide};

/// What makes the planner choose it, together with statistics from when the table was empty.
const BAD_PLAN: [&str; 5] = [
    "enable_hashjoin",
    "enable_mergejoin",
    "enable_material",
    "enable_hashagg",
    "enable_sort",
];

const LIMIT: usize = 10;

fn spoil(database: &Database) {
    for setting in BAD_PLAN {
        let name = database.name();
        let sql = format!("alter database {name} set {setting} = off");
        database.sql(&sql).unwrap();
    }
}

/// How many keys the statement takes that the documents show.
fn taken_as_documented(database: &Database) -> usize {
    let sql = format!(
        "with gone as (delete from keys where id in (select id from keys where status = 0 order by id limit {LIMIT} \
         for update skip locked) returning key) select count(*) from gone"
    );
    database.sql(&sql).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_batch_is_over_its_limit_under_a_bad_plan_k3() {
    const KEYS: usize = 2_000;
    let server = need!(shared());
    for form in FORMS {
        let database = server.database("plan").unwrap();
        let migrated = open_wide(&database.url(), 1).ledger(form);
        migrated.counts().await.unwrap();
        database
            .sql("alter table keys set (autovacuum_enabled = off); analyze keys")
            .unwrap();
        spoil(&database);
        let ledger = open_wide(&database.url(), 16).ledger(form);
        mint(&ledger, KEYS).await;
        let taken = drain(&ledger, 16, LIMIT).await;
        assert_complete(&taken, KEYS, LIMIT);
    }
}

/// The test above means something only while this plan is really chosen.
#[tokio::test(flavor = "multi_thread")]
async fn the_documented_statement_goes_over_its_limit_there() {
    let server = need!(shared());
    let database = server.database("plan").unwrap();
    let ledger = open_wide(&database.url(), 1).ledger(FORMS[0]);
    ledger.counts().await.unwrap();
    database
        .sql("alter table keys set (autovacuum_enabled = off); analyze keys")
        .unwrap();
    spoil(&database);
    mint(&ledger, 500).await;
    let taken = taken_as_documented(&database);
    assert!(taken > LIMIT, "took {taken}");
}
