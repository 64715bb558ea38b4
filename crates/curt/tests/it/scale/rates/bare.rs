//! The engines' own drivers, with nothing around them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use curt_bench::cpu;
use curt_bench::keys::KeySet;
use curt_bench::random::Random;
use curt_core::DomainId;
use scylla::client::session_builder::SessionBuilder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

/// Calls under way at once, as many as the load has connections.
const CALLS: usize = 64;
/// As many as a server opens for look-ups.
const CONNECTIONS: usize = 8;

/// Processor time of one call.
pub(super) struct CallCost {
    pub(super) micros: f64,
    pub(super) calls: u64,
}

/// Runs on a thread of its own, whose time is that of the calls and of nothing else.
fn measure<F>(work: impl FnOnce() -> F + Send + 'static) -> Result<CallCost>
where
    F: Future<Output = Result<(Duration, u64)>>,
{
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(work())
    });
    let (spent, calls) = thread.join().map_err(|_| anyhow::anyhow!("panicked"))??;
    Ok(CallCost {
        micros: spent.as_secs_f64() * 1e6 / calls as f64,
        calls,
    })
}

pub(super) async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    #[expect(clippy::disallowed_methods, reason = "the client holds it")]
    tokio::spawn(connection);
    Ok(client)
}

fn domain() -> i64 {
    i64::from(DomainId::DEFAULT.0)
}

/// Asks for links by their keys, with one statement that was prepared.
pub(super) fn look_up_in_postgres(
    url: String,
    keys: Arc<KeySet>,
    time: Duration,
) -> Result<CallCost> {
    measure(move || async move {
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            let client = connect(&url).await?;
            let select = "select * from links where domain = $1 and key = $2";
            let statement = client.prepare(select).await?;
            clients.push(Arc::new((client, statement)));
        }
        let callers = (0..CALLS).map(|caller| {
            let ready = Arc::clone(&clients[caller % CONNECTIONS]);
            move |key: String| {
                let ready = Arc::clone(&ready);
                async move {
                    let (client, statement) = &*ready;
                    let row = client.query_opt(statement, &[&domain(), &key]).await?;
                    row.context("no link").map(drop)
                }
            }
        });
        call(callers.collect(), &keys, time).await
    })
}

pub(super) fn look_up_in_cassandra(
    addresses: String,
    namespace: String,
    keys: Arc<KeySet>,
    time: Duration,
) -> Result<CallCost> {
    measure(move || async move {
        let session = SessionBuilder::new()
            .known_nodes(addresses.split(','))
            .build()
            .await?;
        let select = "select * from curt.links where namespace = ? and domain = ? and key = ?";
        let statement = session.prepare(select).await?;
        let ready = Arc::new((session, statement));
        let callers = (0..CALLS).map(|_| {
            let (ready, namespace) = (Arc::clone(&ready), namespace.clone());
            move |key: String| {
                let (ready, namespace) = (Arc::clone(&ready), namespace.clone());
                async move {
                    let (session, statement) = &*ready;
                    let values = (namespace, domain(), key);
                    let found = session.execute_unpaged(statement, values).await?;
                    let rows = found.into_rows_result()?.rows_num();
                    anyhow::ensure!(rows == 1, "{rows} links");
                    Ok(())
                }
            }
        });
        call(callers.collect(), &keys, time).await
    })
}

/// Gets items as the simplest client does, one after the other on each connection.
pub(super) fn look_up_in_memcached(
    address: SocketAddr,
    keys: Arc<KeySet>,
    time: Duration,
) -> Result<CallCost> {
    measure(move || async move {
        let mut streams = Vec::new();
        for _ in 0..CALLS {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            streams.push(Arc::new(tokio::sync::Mutex::new(stream)));
        }
        let callers = streams.into_iter().map(|stream| {
            move |key: String| {
                let stream = Arc::clone(&stream);
                async move {
                    let mut stream = stream.lock().await;
                    let get = format!("get curt:{}/{key}\r\n", domain());
                    stream.write_all(get.as_bytes()).await?;
                    let mut answer = Vec::with_capacity(1_024);
                    while !answer.ends_with(b"END\r\n") {
                        let read = stream.read_buf(&mut answer).await?;
                        anyhow::ensure!(read > 0, "the connection ended");
                    }
                    Ok(())
                }
            }
        });
        call(callers.collect(), &keys, time).await
    })
}

/// Calls all of them again and again, and returns what this thread spent on how many calls.
async fn call<C, F>(callers: Vec<C>, keys: &Arc<KeySet>, time: Duration) -> Result<(Duration, u64)>
where
    C: Fn(String) -> F + 'static,
    F: Future<Output = Result<()>> + 'static,
{
    let (spent, began) = (cpu::thread_time(), Instant::now());
    let tasks = tokio::task::LocalSet::new();
    let mut running = JoinSet::new();
    for (seed, caller) in callers.into_iter().enumerate() {
        let keys = Arc::clone(keys);
        let calls = async move {
            let (mut random, mut calls) = (Random::new(seed as u64), 0_u64);
            while began.elapsed() < time {
                let place = random.next_u64() % keys.len() as u64;
                caller(keys.text(place as usize)).await?;
                calls += 1;
            }
            anyhow::Ok(calls)
        };
        running.spawn_local_on(calls, &tasks);
    }
    let mut calls = 0;
    tasks
        .run_until(async {
            while let Some(done) = running.join_next().await {
                calls += done??;
            }
            anyhow::Ok(())
        })
        .await?;
    Ok((cpu::thread_time() - spent, calls))
}
