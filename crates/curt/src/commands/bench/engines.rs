use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table, presets};
use curt_adapters::sqlite::Access;
use curt_core::ports::{BatchId, KeyLedger, KeyPool};
use curt_core::{Clock as _, Key, SystemClock};
use curt_keys::Minter;

use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::Config;
use crate::wiring::KeyStores;

/// Times how fast the configured keys database and pool mint, take, push and pop. What is minted stays in the keys
/// database as free keys; everything else is undone.
pub(super) struct Engines {
    /// How long each measurement lasts.
    pub(super) seconds: u64,
    pub(super) json: bool,
}

struct Row {
    engine: String,
    what: &'static str,
    keys: u64,
    elapsed: Duration,
}

impl Row {
    fn keys_per_second(&self) -> f64 {
        self.keys as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
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
        let minter = Minter::new(config.keys.alphabet, config.keys.length);
        let mut rows = Vec::new();
        for (ledger, address) in stores.keys.ledgers.iter().zip(&config.store.keys) {
            rows.push(
                self.mint(address, ledger, &minter, config.keys.ledger.mint_batch)
                    .await?,
            );
            rows.push(self.take(address, ledger, config.keys.pool.batch).await?);
        }
        for address in &config.store.pool {
            let cap = config.keys.pool.batch * 2;
            let pool = stores.engines.pool(address, OWN_SHARD, cap)?;
            rows.push(
                self.push_and_pop(address, &pool, &minter, config.keys.pool.batch)
                    .await?,
            );
        }
        stores.engines.close().await;
        Ok(rows)
    }

    async fn mint(
        &self,
        engine: &dyn Display,
        ledger: &Arc<dyn KeyLedger>,
        minter: &Minter,
        batch: usize,
    ) -> anyhow::Result<Row> {
        let mut clock = Watch::start(self.seconds);
        while clock.runs() {
            clock.keys += ledger.insert(&minted(minter, batch)).await?;
        }
        Ok(clock.row(engine, "mint"))
    }

    async fn take(
        &self,
        engine: &dyn Display,
        ledger: &Arc<dyn KeyLedger>,
        batch: usize,
    ) -> anyhow::Result<Row> {
        let mut clock = Watch::start(self.seconds);
        while clock.runs() {
            let name = BatchId(format!("bench.{}", rand::random::<u64>()).into());
            let keys = ledger.take(&name, batch, SystemClock.now()).await?;
            ledger.give_back(&name, &keys).await?;
            clock.keys += keys.len() as u64;
        }
        Ok(clock.row(engine, "take and give back"))
    }

    async fn push_and_pop(
        &self,
        engine: &dyn Display,
        pool: &Arc<dyn KeyPool>,
        minter: &Minter,
        batch: usize,
    ) -> anyhow::Result<Row> {
        let keys = minted(minter, batch);
        let mut clock = Watch::start(self.seconds);
        while clock.runs() {
            let name = BatchId(format!("bench.{}", rand::random::<u64>()).into());
            pool.push(&name, &keys).await?;
            clock.keys += pool.pop(batch).await?.len() as u64;
        }
        Ok(clock.row(engine, "push and pop"))
    }
}

/// A pool shard that no server uses.
const OWN_SHARD: usize = 999_999;

fn minted(minter: &Minter, count: usize) -> Vec<Key> {
    std::iter::repeat_with(|| minter.mint())
        .take(count)
        .collect()
}

struct Watch {
    begun: Instant,
    end: Instant,
    keys: u64,
}

impl Watch {
    fn start(seconds: u64) -> Self {
        let begun = Instant::now();
        Self {
            begun,
            end: begun + Duration::from_secs(seconds),
            keys: 0,
        }
    }

    fn runs(&self) -> bool {
        Instant::now() < self.end
    }

    fn row(self, engine: &dyn Display, what: &'static str) -> Row {
        Row {
            engine: engine.to_string(),
            what,
            keys: self.keys,
            elapsed: self.begun.elapsed(),
        }
    }
}

fn show_table(rows: &[Row]) {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["engine", "what", "keys/s"]);
    for row in rows {
        let rate = format!("{:.0}", row.keys_per_second());
        table.add_row([row.engine.clone(), row.what.to_owned(), rate]);
    }
    if let Some(column) = table.column_mut(2) {
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
                "keys_per_second": row.keys_per_second(),
            })
        })
        .collect();
    println!("{}", serde_json::to_string_pretty(&rows)?);
    Ok(())
}
