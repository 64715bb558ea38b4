//! Mints and takes before the engine has gathered its first statistics: it takes a new table for small.

use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::Key;
use curt_core::ports::LedgerForm;
use curt_testkit::engines::postgres::{SYNCED, Server};
use curt_testkit::length::{is_full, length};
use curt_testkit::need;
use curt_testkit::sample::{NOW, batch, key};

use super::ALONE;
use crate::ledger::world::{FORMS, Ledger, open};

const SMALL: usize = 20_000;
const TAKES: usize = 9;
const LIMIT: usize = 2_000;
/// A take that read the whole table would take ten times as long with the large one.
const RATIO_MAX: f64 = 4.0;
/// A machine that is busy with other work may spoil a measurement, but not all.
const TRIES: usize = 3;

/// Ten times as many, where times are judged.
fn large() -> usize {
    length(60_000, 10 * SMALL)
}

/// Mints in steps, as keygen does it: the engine settles on its plans while the table is still small.
async fn mint(ledger: &Ledger, size: usize) {
    for step in 0..size / LIMIT {
        let new = |n: usize| key(&format!("{step}-{n}"));
        let keys: Vec<Key> = (0..LIMIT).map(new).collect();
        assert_eq!(ledger.insert(&keys).await.unwrap(), LIMIT as u64);
    }
}

/// The middle take from a ledger of this size.
async fn middle_take(server: &Arc<Server>, form: LedgerForm, size: usize) -> Duration {
    let database = server.database("unknown_table").unwrap();
    let ledger = open(&database.url()).ledger(form);
    mint(&ledger, size).await;
    let mut times = Vec::with_capacity(TAKES);
    for number in 0..TAKES {
        let name = batch(&number.to_string());
        let started = Instant::now();
        assert_eq!(ledger.take(&name, LIMIT, NOW).await.unwrap().len(), LIMIT);
        times.push(started.elapsed());
        ledger.close(&[name]).await.unwrap();
    }
    times.sort_unstable();
    times[TAKES / 2]
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_from_a_table_without_statistics_do_not_read_all_of_it() {
    let _alone = ALONE.lock().await;
    let settings = [("autovacuum", "off"), SYNCED];
    let server = Arc::new(need!(Server::start_with(&settings)));
    let large = large();
    for form in FORMS {
        let mut ratio = f64::INFINITY;
        for _ in 0..TRIES {
            let small = middle_take(&server, form, SMALL).await;
            let slow = middle_take(&server, form, large).await;
            ratio = slow.as_secs_f64() / small.as_secs_f64();
            println!("{form:?}: take from {SMALL} keys {small:?}, from {large} keys {slow:?}");
            if ratio <= RATIO_MAX || !is_full() {
                break;
            }
        }
        // By their times where no other work spoils them; the next test asks the engine how much it read.
        assert!(ratio <= RATIO_MAX || !is_full(), "{form:?}: {ratio:.1}");
    }
}

/// By the engine's own count, because a scan beside an insert is a matter of twice the time and no more.
#[tokio::test(flavor = "multi_thread")]
async fn mints_into_a_table_without_statistics_do_not_read_all_of_it() {
    const READ: &str = "select coalesce(sum(seq_tup_read), 0) + (select sum(idx_tup_read) from pg_stat_user_indexes \
        where relname = 'keys') from pg_stat_user_tables where relname = 'keys'";
    let _alone = ALONE.lock().await;
    let large = large();
    let settings = [("autovacuum", "off"), SYNCED];
    let server = Arc::new(need!(Server::start_with(&settings)));
    for form in FORMS {
        let database = server.database("unknown_table").unwrap();
        mint(&open(&database.url()).ledger(form), large).await;
        let read: usize = database.sql(READ).unwrap().parse().unwrap();
        println!("{form:?}: read {read} rows to mint {large} keys");
        assert!(read < 2 * large, "{form:?}: {read}");
    }
}
