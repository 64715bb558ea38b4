//! The key ledger in the three forms that keep a row per key.
//!
//! A key's row stays, with status 2, while its batch is open, so that the unique index knows it; the forms differ in
//! what becomes of it when the batch is closed: see [`LedgerForm`]. They share everything else, so that a deployment
//! can change its form at any time.

mod batches;
pub(super) mod keys;

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{BatchId, KeyLedger, LedgerCounts, LedgerForm, OpenBatch};
use curt_core::{ErrorKind, Key, PortError, PortResult, UnixMillis};
use mysql_async::{Error, Transaction};
use tokio::sync::OnceCell;

use self::batches::Change;
use super::engine::Engine;
use super::failure::{BACKEND, DUPLICATE};
use super::schema;

/// How often a take looks for the batch that another taker of the same name made, before it gives up.
const BATCH_LOOKS: usize = 8;

pub(super) struct MysqlLedger {
    engine: Arc<Engine>,
    form: LedgerForm,
    ready: OnceCell<()>,
}

impl MysqlLedger {
    pub(super) fn new(engine: Arc<Engine>, form: LedgerForm) -> Self {
        Self {
            engine,
            form,
            ready: OnceCell::new(),
        }
    }

    /// The engine with its tables up to date. Not at start: a server must start while the keys database is away.
    async fn engine(&self) -> PortResult<&Engine> {
        let ready = || async { schema::migrate(&self.engine).await.map(drop) };
        self.ready.get_or_try_init(ready).await?;
        Ok(&self.engine)
    }

    async fn mint(&self, fencing_token: Option<u64>, keys: &[Key]) -> PortResult<Option<u64>> {
        let (form, list) = (self.form, keys::list(keys));
        let engine = self.engine().await?;
        engine
            .transact("add minted keys", |transaction| {
                Box::pin(async move { mint(transaction, form, fencing_token, &list).await })
            })
            .await
    }
}

#[async_trait]
impl KeyLedger for MysqlLedger {
    async fn insert(&self, keys: &[Key]) -> PortResult<u64> {
        let added = self.mint(None, keys).await?;
        Ok(added.unwrap_or_default())
    }

    async fn insert_fenced(&self, fencing_token: u64, keys: &[Key]) -> PortResult<Option<u64>> {
        self.mint(Some(fencing_token), keys).await
    }

    async fn take(&self, batch: &BatchId, limit: usize, now: UnixMillis) -> PortResult<Vec<Key>> {
        const OP: &str = "take keys";
        let engine = self.engine().await?;
        for _ in 0..BATCH_LOOKS {
            let name = batch.0.clone();
            let taken = engine.transact(OP, |transaction| {
                Box::pin(async move { take(transaction, &name, limit as u64, now).await })
            });
            match taken.await {
                // Another taker of the same name was faster: its batch is there now, unless it is closed again.
                Err(error) if is_duplicate(&error) => {}
                taken => return parse(OP, taken?),
            }
        }
        let detail = "others keep taking and closing batches of the same name";
        Err(PortError::new(ErrorKind::Throttled, BACKEND, OP, detail))
    }

    async fn close(&self, batches: &[BatchId]) -> PortResult<()> {
        let (form, names, none) = (self.form, batches.to_vec(), keys::list(&[]));
        let engine = self.engine().await?;
        engine
            .transact("close batches of keys", |transaction| {
                Box::pin(async move {
                    for name in &names {
                        close(transaction, form, &name.0, &none).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    async fn give_back(&self, batch: &BatchId, unused: &[Key]) -> PortResult<u64> {
        let (form, name, list) = (self.form, batch.0.clone(), keys::list(unused));
        let engine = self.engine().await?;
        engine
            .transact("close a batch of keys", |transaction| {
                Box::pin(async move { close(transaction, form, &name, &list).await })
            })
            .await
    }

    async fn open_batches(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<OpenBatch>> {
        const OP: &str = "list open batches of keys";
        let engine = self.engine().await?;
        let listed = engine.transact(OP, |transaction| {
            Box::pin(async move {
                let mut listed = Vec::new();
                for (name, taken_at, id) in
                    batches::oldest(transaction, before.0, limit as u64).await?
                {
                    listed.push((name, taken_at, keys::of_batch(transaction, id).await?));
                }
                Ok(listed)
            })
        });
        let open = |(name, taken_at, texts): (String, i64, Vec<String>)| {
            Ok(OpenBatch {
                id: BatchId(name.into()),
                taken_at: UnixMillis(taken_at),
                keys: parse(OP, texts)?,
            })
        };
        let open: PortResult<Vec<OpenBatch>> = listed.await?.into_iter().map(open).collect();
        // A batch that was closed between the two look-ups has no keys any more.
        Ok(open?
            .into_iter()
            .filter(|open| !open.keys.is_empty())
            .collect())
    }

    async fn recycle(&self, keys: &[Key]) -> PortResult<u64> {
        let list = keys::list(keys);
        let engine = self.engine().await?;
        engine
            .transact("recycle keys", |transaction| {
                Box::pin(async move {
                    let back = keys::recycle(transaction, &list).await?;
                    let change = Change {
                        free: back.cast_signed(),
                        recycled: back.cast_signed(),
                        ..Change::default()
                    };
                    batches::count(transaction, change).await?;
                    Ok(back)
                })
            })
            .await
    }

    async fn counts(&self) -> PortResult<LedgerCounts> {
        let engine = self.engine().await?;
        engine
            .transact("count keys", |transaction| {
                Box::pin(batches::totals(transaction))
            })
            .await
    }
}

/// Adds minted keys, unless an owner with a higher fencing token has been here.
async fn mint(
    transaction: &mut Transaction<'_>,
    form: LedgerForm,
    fencing_token: Option<u64>,
    list: &str,
) -> Result<Option<u64>, Error> {
    if let Some(fencing_token) = fencing_token
        && !keys::advance_fencing_token(transaction, fencing_token).await?
    {
        return Ok(None);
    }
    let added = keys::add(transaction, form, list).await?;
    let change = Change {
        minted: added.cast_signed(),
        free: added.cast_signed(),
        ..Change::default()
    };
    batches::count(transaction, change).await?;
    Ok(Some(added))
}

async fn take(
    transaction: &mut Transaction<'_>,
    name: &str,
    limit: u64,
    now: UnixMillis,
) -> Result<Vec<String>, Error> {
    if let Some(open) = batches::find(transaction, name).await? {
        return keys::of_batch(transaction, open.id).await;
    }
    let rows = keys::lock_unused(transaction, limit).await?;
    if rows.is_empty() {
        // Perhaps another taker of the same name has them locked: this waits for it, and is refused if it succeeds.
        let batch = batches::open(transaction, name, now.0, 0).await?;
        batches::forget(transaction, batch).await?;
        return Ok(Vec::new());
    }
    let size = rows.len() as u64;
    let batch = batches::open(transaction, name, now.0, size).await?;
    keys::mark_open(transaction, batch, &rows).await?;
    let change = Change {
        free: -size.cast_signed(),
        open: size.cast_signed(),
        ..Change::default()
    };
    batches::count(transaction, change).await?;
    Ok(rows.into_iter().map(|(_, name)| name).collect())
}

async fn close(
    transaction: &mut Transaction<'_>,
    form: LedgerForm,
    name: &str,
    unused: &str,
) -> Result<u64, Error> {
    let Some(open) = batches::find_locked(transaction, name).await? else {
        return Ok(0);
    };
    let freed = keys::give_back(transaction, open.id, unused).await?;
    keys::set_used(transaction, form, open.id).await?;
    batches::forget(transaction, open.id).await?;
    let change = Change {
        free: freed.cast_signed(),
        open: -open.size.cast_signed(),
        ..Change::default()
    };
    batches::count(transaction, change).await?;
    Ok(freed)
}

fn is_duplicate(error: &PortError) -> bool {
    let told = error
        .source
        .as_ref()
        .and_then(|source| source.downcast_ref());
    matches!(told, Some(Error::Server(told)) if told.code == DUPLICATE)
}

fn parse(op: &'static str, texts: Vec<String>) -> PortResult<Vec<Key>> {
    let parse = |text: String| {
        Key::parse(&text).map_err(|error| {
            let detail = format!("{text:?} is stored as a key: restore a backup");
            PortError::new(ErrorKind::Corrupt, BACKEND, op, detail).with_source(error)
        })
    };
    texts.into_iter().map(parse).collect()
}
