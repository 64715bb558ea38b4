use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use comfy_table::{CellAlignment, Table, presets};
use curt_adapter_kit::bare::BareKeys;
use curt_core::place::Modulo;
use curt_core::ports::{BatchId, KeyLedger, KeyPool};
use curt_core::{Clock as _, Key, SystemClock};
use curt_keys::Minter;
use curt_sqlite::Access;

use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::Config;
use crate::wiring::KeyStores;

/// A pool shard that no server uses.
const OWN_SHARD: usize = 999_999;

/// Times how fast the configured keys database and pool mint, take, push and pop, in turns with the bare statements of
/// the same engine. What is minted stays in the keys database as free keys; everything else is undone.
pub(super) struct Engines {
    /// How long each measurement lasts.
    pub(super) seconds: u64,
    pub(super) json: bool,
}

impl Engines {
    pub(super) fn run(self, arguments: &ConfigArgs) -> anyhow::Result<()> {
        let config = Config::load(arguments)?;
        let rows = block_on(self.measure(&config))?;
        match self.json {
            true => show_json(&rows)?,
            false => show_table(&rows),
        }
        Ok(())
    }

    async fn measure(&self, config: &Config) -> anyhow::Result<Vec<Row>> {
        let mut stores = KeyStores::open(config, "curt bench", Access::Command)?;
        let minter = Minter::new(
            config.keys.alphabet,
            config.keys.length,
            config.keys.unwanted.clone(),
        );
        let (keys, store) = (&config.keys, &config.store);
        let homes = Modulo::new(u32::try_from(store.keys.len())?);
        let homes = homes.context("store.keys names no shard")?;
        let mut rows = Vec::new();
        for (shard, address) in store.keys.iter().enumerate() {
            let bench = LedgerBench {
                ledger: stores.keys.ledgers[shard].clone(),
                bare: stores.engines.bare_ledger(address).await?,
                minter: &minter,
                homes,
                shard,
                seconds: self.seconds,
            };
            rows.push(bench.mint(keys.ledger.mint_batch).await?.row(address));
            rows.push(bench.take(keys.pool.batch).await?.row(address));
            remove(bench.bare).await?;
        }
        for address in &store.pool {
            let pool = stores
                .engines
                .pool(address, OWN_SHARD, keys.pool.batch * 2)?;
            let bare = stores.engines.bare_pool(address, OWN_SHARD)?;
            let batch: Vec<Key> = (0..keys.pool.batch).map(|_| minter.mint()).collect();
            let [push, pop] = self.push_and_pop(&pool, bare.as_ref(), &batch).await?;
            rows.extend([push.row(address), pop.row(address)]);
            remove(bare).await?;
        }
        stores.engines.close().await;
        Ok(rows)
    }

    async fn push_and_pop(
        &self,
        pool: &Arc<dyn KeyPool>,
        bare: Option<&Arc<dyn BareKeys>>,
        keys: &[Key],
    ) -> anyhow::Result<[Turns; 2]> {
        let (mut push, mut pop) = (Turns::new("push"), Turns::new("pop"));
        let end = Instant::now() + Duration::from_secs(self.seconds);
        while Instant::now() < end {
            let name = new_name();
            push.ours.time(pool.push(&name, keys), |n| n as u64).await?;
            let popped = pool.pop(keys.len());
            pop.ours.time(popped, |popped| popped.len() as u64).await?;
            if let Some(bare) = bare {
                push.bare
                    .time(bare.put(keys), |()| keys.len() as u64)
                    .await?;
                pop.bare.time(bare.take(keys.len()), |taken| taken).await?;
            }
        }
        Ok([push, pop])
    }
}

async fn remove(bare: Option<Arc<dyn BareKeys>>) -> anyhow::Result<()> {
    if let Some(bare) = bare {
        bare.remove().await?;
    }
    Ok(())
}

fn new_name() -> BatchId {
    BatchId(format!("bench.{}", rand::random::<u64>()).into())
}

/// One shard of the keys database beside its yardstick.
struct LedgerBench<'a> {
    ledger: Arc<dyn KeyLedger>,
    bare: Option<Arc<dyn BareKeys>>,
    minter: &'a Minter,
    homes: Modulo,
    shard: usize,
    seconds: u64,
}

impl LedgerBench<'_> {
    /// Keys whose home is this shard, as keygen makes them.
    fn minted(&self, count: usize) -> Vec<Key> {
        std::iter::repeat_with(|| self.minter.mint())
            .filter(|key| self.homes.node(key.as_bytes()).0 as usize == self.shard)
            .take(count)
            .collect()
    }

    fn end(&self) -> Instant {
        Instant::now() + Duration::from_secs(self.seconds)
    }

    async fn mint(&self, batch: usize) -> anyhow::Result<Turns> {
        let mut turns = Turns::new("mint");
        let end = self.end();
        while Instant::now() < end {
            let keys = self.minted(batch);
            let inserted = self.ledger.insert(&keys);
            turns.ours.time(inserted, |new| new).await?;
            if let Some(bare) = &self.bare {
                let put = bare.put(&keys);
                turns.bare.time(put, |()| keys.len() as u64).await?;
            }
        }
        Ok(turns)
    }

    /// What is taken goes back outside of the time.
    async fn take(&self, batch: usize) -> anyhow::Result<Turns> {
        let mut turns = Turns::new("take");
        let end = self.end();
        while Instant::now() < end {
            let name = new_name();
            let begun = Instant::now();
            let taken = self.ledger.take(&name, batch, SystemClock.now()).await?;
            turns.ours.add(begun, taken.len() as u64);
            self.ledger.give_back(&name, &taken).await?;
            if let Some(bare) = &self.bare {
                turns.bare.time(bare.take(batch), |taken| taken).await?;
                bare.put(&self.minted(batch)).await?;
            }
        }
        Ok(turns)
    }
}

/// A measurement of an engine as we use it, in turns with its bare statements.
struct Turns {
    what: &'static str,
    ours: Watch,
    bare: Watch,
}

impl Turns {
    fn new(what: &'static str) -> Self {
        let (ours, bare) = (Watch::default(), Watch::default());
        Self { what, ours, bare }
    }

    fn row(&self, engine: &dyn Display) -> Row {
        Row {
            engine: engine.to_string(),
            what: self.what,
            keys: self.ours.keys,
            rate: self.ours.keys_per_second(),
            bare_rate: (self.bare.keys > 0).then(|| self.bare.keys_per_second()),
        }
    }
}

#[derive(Default)]
struct Watch {
    keys: u64,
    elapsed: Duration,
}

impl Watch {
    /// Times `work` and counts the keys that it did.
    async fn time<T, E>(
        &mut self,
        work: impl Future<Output = Result<T, E>>,
        keys: impl FnOnce(T) -> u64,
    ) -> Result<(), E> {
        let begun = Instant::now();
        let done = work.await?;
        self.add(begun, keys(done));
        Ok(())
    }

    fn add(&mut self, begun: Instant, keys: u64) {
        self.elapsed += begun.elapsed();
        self.keys += keys;
    }

    fn keys_per_second(&self) -> f64 {
        self.keys as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

struct Row {
    engine: String,
    what: &'static str,
    keys: u64,
    rate: f64,
    /// Of the bare statements; `None` for an engine without a yardstick.
    bare_rate: Option<f64>,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.bare_rate.map(|bare| self.rate / bare)
    }
}

fn show_table(rows: &[Row]) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "engine",
        "what",
        "keys/s",
        "bare keys/s",
        "of bare",
    ]);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for row in rows {
        table.add_row([
            row.engine.clone(),
            row.what.to_owned(),
            format!("{:.0}", row.rate),
            or_dash(row.bare_rate.map(|rate| format!("{rate:.0}"))),
            or_dash(row.ratio().map(|ratio| format!("{ratio:.2}"))),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
}

fn show_json(rows: &[Row]) -> anyhow::Result<()> {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            serde_json::json!({
                "engine": row.engine,
                "what": row.what,
                "keys": row.keys,
                "keys_per_second": row.rate,
                "bare_keys_per_second": row.bare_rate,
                "of_bare": row.ratio(),
            })
        })
        .collect();
    println!("{}", serde_json::to_string_pretty(&rows)?);
    Ok(())
}
