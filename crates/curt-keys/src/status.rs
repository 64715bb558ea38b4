//! The whole line at a glance, over all processes: what an operator looks at, and what the counts are made of.

use curt_core::ports::{Finding, LedgerCounts, LinkCounts};
use curt_core::{ErrorKind, PortError, PortResult};

use crate::heartbeat::{Holdings, Instance, Registry};
use crate::key_counts::{self, KeyAudit, KeyCounts};
use crate::lease::LeaseName;
use crate::ports::KeyPorts;
use crate::settings::KeySettings;

/// Takes slow down from about here (the tests print by how much), and a vacuum that keeps up stays below: it comes once
/// a minute, and the first fill of an installation leaves as many dead rows as the pools hold.
const FINDING_MAX: u64 = 100_000;
/// The same for large ledgers, in high watermarks.
const FINDING_HIGH_WATERMARKS: u64 = 5;

/// What could be seen of a supply of the strategies `pool` and `status`. A part that did not answer is `None`, and why
/// is among the failures.
#[derive(Debug, Default)]
pub struct KeyStatus {
    pub ledgers: Vec<LedgerStatus>,
    pub pools: Vec<PoolStatus>,
    pub instances: Option<Vec<Instance>>,
    pub links: Option<LinkCounts>,
    /// Which keys are in two stages, if that was looked at.
    pub audit: Option<KeyAudit>,
    pub failures: Vec<PortError>,
    /// One process holds all keys that were taken, and tells nobody how many, as
    /// [`assume_one_holder`](Self::assume_one_holder) says.
    has_one_holder: bool,
    /// Audits that ask instances for their buffers.
    pub(crate) audits: Vec<Box<str>>,
}

/// One shard of the keys database.
#[derive(Debug)]
pub struct LedgerStatus {
    pub counts: Option<LedgerCounts>,
    /// What slows the engine down, as it tells.
    pub findings: Vec<Finding>,
    /// The keygen that has its lease, as it describes itself.
    pub owner: Option<Box<str>>,
}

/// One shard of the pool.
#[derive(Debug)]
pub struct PoolStatus {
    pub depth: Option<u64>,
    /// The keysync that has its lease, as it describes itself.
    pub owner: Option<Box<str>>,
}

impl KeyStatus {
    /// Asks every part, one after the other: while keys move, the sums can be off by those that moved meanwhile.
    pub async fn read(ports: &KeyPorts) -> Self {
        let mut status = Self::default();
        for (shard, ledger) in ports.ledgers.iter().enumerate() {
            let counts = status.ok_or_note(ledger.counts().await);
            // A ledger that does not answer has said so once already.
            let findings = match counts {
                Some(_) => status.ok_or_note(ledger.health().await).unwrap_or_default(),
                None => Vec::new(),
            };
            let owner = ports
                .leases
                .holder(&LeaseName::Ledger(shard).to_string())
                .await;
            let owner = status.ok_or_note(owner).flatten();
            status.ledgers.push(LedgerStatus {
                counts,
                findings,
                owner,
            });
        }
        for (shard, pool) in ports.pools.iter().enumerate() {
            let depth = status.ok_or_note(pool.depth().await);
            let owner = ports
                .leases
                .holder(&LeaseName::Pool(shard).to_string())
                .await;
            let owner = status.ok_or_note(owner).flatten();
            status.pools.push(PoolStatus { depth, owner });
        }
        if let Some(registry) = status.ok_or_note(Registry::read(&*ports.heartbeats).await) {
            status.instances = Some(registry.instances);
            status.audits = registry.audits;
        }
        if let Some(links) = &ports.links {
            status.links = status.ok_or_note(links.totals.counts().await);
        }
        status
    }

    fn ok_or_note<T>(&mut self, answer: PortResult<T>) -> Option<T> {
        answer.map_err(|error| self.failures.push(error)).ok()
    }

    /// Counts for one process that shares its heartbeats with nobody and draws its keys straight from the ledgers: what
    /// is in open batches and on no link is in its buffer, as far as can be told from outside.
    pub fn assume_one_holder(&mut self) {
        self.instances = None;
        self.has_one_holder = true;
    }

    /// What all instances hold together.
    #[must_use]
    pub fn holdings(&self) -> Option<Holdings> {
        let instances = self.instances.as_ref()?.iter();
        Some(
            instances.fold(Holdings::default(), |sum, instance| Holdings {
                buffered: sum.buffered + instance.holdings.buffered,
                in_transit: sum.in_transit + instance.holdings.in_transit,
            }),
        )
    }

    /// K-2, if every part is known.
    #[must_use]
    pub fn key_counts(&self) -> Option<KeyCounts> {
        let (counts, pooled_keys) = (self.ledger_counts()?, self.pooled_keys()?);
        let links = self.links.as_ref()?;
        let holdings = match self.has_one_holder {
            true => Holdings::default(),
            false => self.holdings()?,
        };
        let mut counts = key_counts::total(counts.into_iter(), pooled_keys, holdings, links);
        if self.has_one_holder {
            counts = counts.with_open_as_buffered();
        }
        Some(match &self.audit {
            Some(audit) => counts.with_audit(&audit.duplicates),
            None => counts,
        })
    }

    /// K-2, or why it is not known.
    pub(crate) fn into_key_counts(mut self) -> PortResult<KeyCounts> {
        match (self.failures.pop(), self.key_counts()) {
            (None, Some(counts)) => Ok(counts),
            (failure, _) => Err(failure.unwrap_or_else(|| {
                let (kind, op) = (ErrorKind::Unavailable, "count keys");
                PortError::new(kind, "key supply", op, "not every stage is known")
            })),
        }
    }

    pub(crate) fn ledger_counts(&self) -> Option<Vec<LedgerCounts>> {
        self.ledgers.iter().map(|ledger| ledger.counts).collect()
    }

    /// Keys in all pools together.
    pub(crate) fn pooled_keys(&self) -> Option<u64> {
        self.pools.iter().map(|pool| pool.depth).sum()
    }

    /// What an operator should look at. Whether `is_unbalanced` takes several looks, or an audit, to tell.
    #[must_use]
    pub fn alarms(&self, settings: &KeySettings, is_unbalanced: bool) -> Vec<String> {
        let mut alarms = Vec::new();
        for (shard, ledger) in self.ledgers.iter().enumerate() {
            let free = ledger.counts.map(|counts| counts.free);
            alarms.extend(low_watermark_warning(
                "keys-db",
                shard,
                free,
                settings.ledger.low,
            ));
            let most = FINDING_MAX.max(FINDING_HIGH_WATERMARKS * settings.ledger.high);
            let alarming = ledger.findings.iter().filter(|found| found.count > most);
            alarms.extend(alarming.map(
                |Finding {
                     name,
                     count,
                     advice,
                 }| { format!("keys-db-{shard} has {count} {name}: {advice}") },
            ));
        }
        for (shard, pool) in self.pools.iter().enumerate() {
            alarms.extend(low_watermark_warning(
                "keys-pool",
                shard,
                pool.depth,
                settings.pool.low,
            ));
        }
        if let Some(counts) = self.key_counts() {
            alarms.extend(imbalance_warnings(&counts, is_unbalanced));
        }
        alarms.extend(self.audit.as_ref().and_then(audit_warning));
        for instance in self.instances.iter().flatten() {
            if instance.conflicts > 0 {
                let (who, conflicts) = (&instance.who, instance.conflicts);
                alarms.push(format!(
                    "{who} met {conflicts} keys that were on links already"
                ));
            }
        }
        alarms.extend(self.failures.iter().map(ToString::to_string));
        alarms
    }
}

fn imbalance_warnings(counts: &KeyCounts, is_unbalanced: bool) -> Vec<String> {
    let mut alarms = Vec::new();
    if counts.leaked > 0 {
        let leaked = counts.leaked;
        alarms.push(format!("{leaked} keys leaked: no stage knows them"));
    }
    let duplicated = counts.duplicated;
    if duplicated > 0 && counts.is_audited {
        alarms.push(format!(
            "{duplicated} keys are in two places: a pool came back with keys that had been taken from it. Each is \
             passed over when it meets its link"
        ));
    } else if duplicated > 0 && is_unbalanced {
        alarms.push(imbalance_text(duplicated));
    }
    if counts.is_audited && is_unbalanced {
        alarms.push(
            "the keys do not balance even so: a keys database does not know keys that it has made"
                .to_owned(),
        );
    }
    alarms
}

/// The text of an imbalance that was not looked into.
pub(crate) fn imbalance_text(keys: u64) -> String {
    format!(
        "{keys} keys more are found than were made: a pool came back with old keys, or a keys database lost some; \
         curt keys status --audit counts them"
    )
}

fn audit_warning(audit: &KeyAudit) -> Option<String> {
    if let Some(who) = audit.silent.first() {
        return Some(format!(
            "the audit is not exact: {who} did not tell its keys"
        ));
    }
    let text = "the audit is not exact: keys moved meanwhile";
    audit.has_moved.then(|| text.to_owned())
}

/// A refill starts at the low watermark; half of it means that none came in time.
fn low_watermark_warning(name: &str, shard: usize, keys: Option<u64>, low: u64) -> Option<String> {
    let keys = keys.filter(|&keys| keys < low / 2)?;
    Some(format!(
        "{name}-{shard} runs dry: {keys} keys, and a refill starts below {low}"
    ))
}
