//! Flushes that are interrupted at the worst moment: the same flush again counts once.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::ErrorKind;
use curt_testkit::engines::postgres::{Database, Server, shared};
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::need;
use tokio_postgres::{Client, NoTls};

use crate::clicks::world::{Clicks, WAIT_MAX, apply_surely, link, one_click, open, stream, total};

/// Stops every flush at one place, for as long as a session holds the lock.
struct Gate {
    database: Database,
    session: Client,
}

impl Gate {
    /// `place` is when a trigger on the chunks fires.
    async fn close(database: &Database, place: &str) -> Self {
        database
            .sql(&format!(
                "create function wait_at_gate() returns trigger language plpgsql as \
                 'begin perform pg_advisory_xact_lock(1); return new; end'; \
                 create {place} execute function wait_at_gate()"
            ))
            .unwrap();
        let (session, connection) = tokio_postgres::connect(&database.url(), NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        let gate = Self {
            database: database.clone(),
            session,
        };
        gate.run("select pg_advisory_lock(1)").await;
        gate
    }

    async fn run(&self, sql: &str) {
        self.session.batch_execute(sql).await.unwrap();
    }

    /// How many sessions stand at the gate.
    async fn wait_until(&self, waiting: &str) {
        let started = Instant::now();
        let sql = "select count(*) from pg_locks where locktype = 'advisory' and not granted \
                   and database = (select oid from pg_database where datname = current_database())";
        while self.database.sql(sql).unwrap() != waiting {
            assert!(started.elapsed() < WAIT_MAX, "nobody comes to the gate");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Lets the flush pass that waits, and waits until its transaction has ended in one way or the other.
    async fn open(self) {
        self.run("select pg_advisory_unlock(1)").await;
        self.wait_until("0").await;
        self.run("begin; lock table rollup_chunks; commit").await;
    }
}

fn line_to(server: &Server) -> Proxy {
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    Proxy::to(target).unwrap()
}

async fn open_with_a_click(url: &str) -> Clicks {
    let clicks = open(url);
    apply_surely(&clicks, one_click(1, 0)).await;
    clicks
}

async fn cut_at(place: &str, is_committed: bool) {
    let server = need!(shared());
    let database = server.database("cut").unwrap();
    let proxy = line_to(&server);
    let url = format!(
        "postgres://postgres@{}/{}",
        proxy.address(),
        database.name()
    );
    let clicks = open_with_a_click(&url).await;
    let gate = Gate::close(&database, place).await;
    let flush = tokio::spawn({
        let clicks = Arc::clone(&clicks);
        async move { clicks.apply(one_click(1, 1)).await }
    });
    gate.wait_until("1").await;
    proxy.set(Line::Cut);
    let error = flush.await.unwrap().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error:?}");
    gate.open().await;
    proxy.set(Line::Sound);

    let before = total(&clicks, &link("a")).await;
    assert_eq!(before, 1 + u64::from(is_committed));
    let again = clicks.apply(one_click(1, 1)).await.unwrap();
    assert_eq!(again, !is_committed);
    assert_eq!(clicks.offset(stream(1)).await.unwrap(), 2);
    assert_eq!(total(&clicks, &link("a")).await, 2, "C-1");
    let clicks = database
        .sql("select sum(clicks) from click_blocks")
        .unwrap();
    assert_eq!(clicks, "2", "C-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_cut_during_the_commit_counts_once_c1() {
    let at_commit = "constraint trigger gate after insert on rollup_chunks deferrable initially deferred for each row";
    cut_at(at_commit, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_cut_before_the_commit_counts_once_c1() {
    cut_at(
        "trigger gate before insert on rollup_chunks for each row",
        false,
    )
    .await;
}

/// A caller that stops waiting leaves no transaction open in the connection that it gives back.
#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_flush_is_undone_c1() {
    let server = need!(shared());
    let database = server.database("abandoned").unwrap();
    let clicks = open_with_a_click(&database.url()).await;
    let gate = Gate::close(
        &database,
        "trigger gate before insert on rollup_chunks for each row",
    )
    .await;
    let flush = tokio::spawn({
        let clicks = Arc::clone(&clicks);
        async move { clicks.apply(one_click(1, 1)).await }
    });
    gate.wait_until("1").await;
    flush.abort();
    assert!(flush.await.unwrap_err().is_cancelled());
    gate.open().await;
    assert_eq!(clicks.offset(stream(1)).await.unwrap(), 1);
    assert!(clicks.apply(one_click(1, 1)).await.unwrap());
    assert_eq!(total(&open(&database.url()), &link("a")).await, 2, "C-1");
}
