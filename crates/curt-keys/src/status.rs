//! The whole line at a glance, over all processes: what an operator looks at, and what the accounts are made of.

use curt_core::ports::{KeyPool, LedgerCounts, LinkCounts};
use curt_core::{PortError, PortResult};

use crate::account::{self, KeyAccounts};
use crate::mint::ledger_lock;
use crate::presence::{Held, Process, processes};
use crate::settings::KeySettings;
use crate::supply::KeyPorts;
use crate::sync::pool_lock;

/// Takes are said to slow down from about here (the tests print by how much), and a vacuum that keeps up stays below.
const DEAD_ROWS_MAX: u64 = 20_000;

/// What could be seen of a supply of the strategies `pool` and `status`. A part that did not answer is `None`, and why
/// is among the failures.
#[derive(Debug, Default)]
pub struct KeyStatus {
    pub ledgers: Vec<LedgerStatus>,
    pub pools: Vec<PoolStatus>,
    pub processes: Option<Vec<Process>>,
    pub links: Option<LinkCounts>,
    pub failures: Vec<PortError>,
}

/// One shard of the keys database.
#[derive(Debug)]
pub struct LedgerStatus {
    pub counts: Option<LedgerCounts>,
    /// Deleted, and still in the way of takes.
    pub dead_rows: Option<u64>,
    /// The keygen that looks after it, as it describes itself.
    pub owner: Option<Box<str>>,
}

/// One shard of the pool.
#[derive(Debug)]
pub struct PoolStatus {
    pub depth: Option<u64>,
    /// The keysync that looks after it, as it describes itself.
    pub owner: Option<Box<str>>,
}

impl KeyStatus {
    /// Asks every part, one after the other: while keys move, the sums can be off by those that moved meanwhile.
    pub async fn read(ports: &KeyPorts) -> Self {
        let mut status = Self::default();
        for (shard, ledger) in ports.ledgers.iter().enumerate() {
            let counts = status.noted(ledger.counts().await);
            // A ledger that does not answer has said so once already.
            let dead_rows = match counts {
                Some(_) => status.noted(ledger.dead_rows().await),
                None => None,
            };
            let owner = ports.locks.holder(&ledger_lock(shard)).await;
            let owner = status.noted(owner).flatten();
            status.ledgers.push(LedgerStatus {
                counts,
                dead_rows,
                owner,
            });
        }
        for (shard, pool) in ports.pools.iter().enumerate() {
            let depth = status.noted(pool.depth().await);
            let owner = ports.locks.holder(&pool_lock(shard)).await;
            let owner = status.noted(owner).flatten();
            status.pools.push(PoolStatus { depth, owner });
        }
        status.processes = status.noted(processes(&*ports.roster).await);
        if let Some(links) = &ports.links {
            status.links = status.noted(links.counts().await);
        }
        status
    }

    /// Marks the pools as unknown where a pool is in the memory of another process.
    pub fn forget_foreign_pools(&mut self, pools: &[std::sync::Arc<dyn KeyPool>]) {
        for (status, pool) in self.pools.iter_mut().zip(pools) {
            if !pool.survives_restart() {
                status.depth = None;
            }
        }
    }

    fn noted<T>(&mut self, answer: PortResult<T>) -> Option<T> {
        answer.map_err(|error| self.failures.push(error)).ok()
    }

    /// What all processes hold together.
    #[must_use]
    pub fn held(&self) -> Option<Held> {
        let processes = self.processes.as_ref()?.iter();
        Some(processes.fold(Held::default(), |sum, process| Held {
            ring: sum.ring + process.held.ring,
            moving: sum.moving + process.held.moving,
        }))
    }

    /// K-2, if every part is known.
    #[must_use]
    pub fn accounts(&self) -> Option<KeyAccounts> {
        let counts: Option<Vec<LedgerCounts>> = self.ledgers.iter().map(|l| l.counts).collect();
        let pooled: Option<u64> = self.pools.iter().map(|pool| pool.depth).sum();
        let (held, links) = (self.held()?, self.links.as_ref()?);
        Some(account::total(counts?.into_iter(), pooled?, held, links))
    }

    /// What somebody should look at.
    #[must_use]
    pub fn alarms(&self, settings: &KeySettings) -> Vec<String> {
        let mut alarms = Vec::new();
        for (shard, ledger) in self.ledgers.iter().enumerate() {
            let free = ledger.counts.map(|counts| counts.free);
            alarms.extend(low_water("keys-db", shard, free, settings.ledger.low));
            alarms.extend(too_many_dead(shard, ledger.dead_rows));
        }
        for (shard, pool) in self.pools.iter().enumerate() {
            alarms.extend(low_water("keys-pool", shard, pool.depth, settings.pool.low));
        }
        let leaked = self.accounts().map_or(0, |accounts| accounts.leaked);
        if leaked > 0 {
            alarms.push(format!("{leaked} keys leaked: no stage knows them"));
        }
        for process in self.processes.iter().flatten() {
            if process.conflicts > 0 {
                let (who, conflicts) = (&process.who, process.conflicts);
                alarms.push(format!(
                    "{who} met {conflicts} keys that were on links already"
                ));
            }
        }
        alarms.extend(self.failures.iter().map(ToString::to_string));
        alarms
    }
}

/// A refill starts at the low mark; half of it means that none came in time.
fn low_water(name: &str, shard: usize, keys: Option<u64>, low: u64) -> Option<String> {
    let keys = keys.filter(|&keys| keys < low / 2)?;
    Some(format!(
        "{name}-{shard} runs dry: {keys} keys, and a refill starts below {low}"
    ))
}

fn too_many_dead(shard: usize, rows: Option<u64>) -> Option<String> {
    let rows = rows.filter(|&rows| rows > DEAD_ROWS_MAX)?;
    Some(format!(
        "keys-db-{shard} steps over {rows} dead rows at every take: look for a transaction that stays open, or for an \
         autovacuum that is off or comes too rarely"
    ))
}
