use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use curt_core::Key;
use curt_core::clock::Clock;
use curt_core::ports::{BatchId, KeyLedger};
use rand::Rng as _;

use crate::lease::{HeldLeases, LeaseName};
use crate::pace::report;
use crate::ports::KeyPorts;

/// A process that takes batches, told apart from every other. While it lives it holds the lease of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BatchOwner(u64);

impl BatchOwner {
    fn new() -> Self {
        Self(rand::rng().next_u64())
    }

    pub(crate) fn lease(self) -> LeaseName {
        LeaseName::BatchOwner(self.to_string().into())
    }
}

impl fmt::Display for BatchOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Where the keys of a batch go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Destination {
    /// This pool shard, from a ledger.
    Pool(usize),
    /// The buffer of the owner, from a ledger.
    Buffer,
}

/// What the id of a batch says: who took it, where its keys go, and a running number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchName {
    pub(crate) owner: BatchOwner,
    pub(crate) to: Destination,
    pub(crate) number: u64,
}

impl fmt::Display for BatchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, to, number } = self;
        match to {
            Destination::Pool(shard) => write!(f, "{owner}.{shard}.{number}"),
            Destination::Buffer => write!(f, "{owner}.buffer.{number}"),
        }
    }
}

/// The text is not the name of a batch that this version makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidBatchName;

impl FromStr for BatchName {
    type Err = InvalidBatchName;

    fn from_str(text: &str) -> Result<Self, InvalidBatchName> {
        let read = || {
            let (owner, rest) = text.split_once('.')?;
            let (to, number) = rest.split_once('.')?;
            Some(Self {
                owner: BatchOwner(u64::from_str_radix(owner, 16).ok()?),
                to: match to {
                    "buffer" => Destination::Buffer,
                    shard => Destination::Pool(shard.parse().ok()?),
                },
                number: number.parse().ok()?,
            })
        };
        // One name has one spelling, or two could mean the same batch.
        read()
            .filter(|name| name.to_string() == text)
            .ok_or(InvalidBatchName)
    }
}

/// Keys that left a ledger, in a batch that is open there.
#[derive(Debug)]
pub(super) struct TakenBatch {
    pub(super) ledger: usize,
    pub(super) batch: BatchId,
    pub(super) keys: Vec<Key>,
}

/// Takes batches from the ledgers in the name of this process.
pub(super) struct BatchTaker {
    ledgers: Vec<Arc<dyn KeyLedger>>,
    clock: Arc<dyn Clock>,
    pub(super) leases: HeldLeases,
    owner: BatchOwner,
    named: u64,
    next_ledger: usize,
    /// Takes that failed, by ledger: asked again under the same name, they give the same keys.
    unanswered: HashMap<(Destination, usize), BatchId>,
}

impl BatchTaker {
    pub(super) fn new(ports: &KeyPorts, leases: HeldLeases) -> Self {
        Self {
            ledgers: ports.ledgers.clone(),
            clock: Arc::clone(&ports.clock),
            leases,
            owner: BatchOwner::new(),
            named: 0,
            next_ledger: 0,
            unanswered: HashMap::new(),
        }
    }

    pub(super) fn owner(&self) -> BatchOwner {
        self.owner
    }

    pub(super) fn name(&mut self, to: Destination) -> BatchId {
        self.named += 1;
        let (owner, number) = (self.owner, self.named);
        BatchId(BatchName { owner, to, number }.to_string().into())
    }

    /// Keeps the lease that tells others that we live, and returns whether we have it. Without it they would settle our
    /// batches behind our back, and when it was lost for a while they may have done so. Then we go on under a new name:
    /// a take that is repeated under the old one would bring new keys, and the pool would answer that it has them
    /// already.
    pub(super) async fn keep_owner_lease(&mut self) -> bool {
        let lease = self.owner.lease();
        let before = self.leases.fencing_token(&lease).await;
        if !self.leases.keep(&lease).await {
            return false;
        }
        if before.is_none() || self.leases.fencing_token(&lease).await == before {
            return true;
        }
        self.leases.release(&lease).await;
        self.owner = BatchOwner::new();
        self.unanswered.clear();
        self.leases.keep(&self.owner.lease()).await
    }

    /// Takes a batch from the next ledger that has one. A ledger that fails is asked again by the next call, under the
    /// same batch name: it may have taken the keys without being able to say so.
    pub(super) async fn take(&mut self, to: Destination, limit: usize) -> Option<TakenBatch> {
        let now = self.clock.now();
        for step in 0..self.ledgers.len() {
            let ledger = (self.next_ledger + step) % self.ledgers.len();
            let batch = match self.unanswered.remove(&(to, ledger)) {
                Some(batch) => batch,
                None => self.name(to),
            };
            match self.ledgers[ledger].take(&batch, limit, now).await {
                Ok(keys) if keys.is_empty() => {}
                Ok(keys) => {
                    self.next_ledger = ledger + 1;
                    return Some(TakenBatch {
                        ledger,
                        batch,
                        keys,
                    });
                }
                Err(error) => {
                    report(&error);
                    self.unanswered.insert((to, ledger), batch);
                }
            }
        }
        None
    }

    /// Whether an open batch may have been left under our name.
    pub(super) fn has_named(&self) -> bool {
        self.named > 0
    }
}

/// Batches that no longer protect their keys, by ledger, and that are not known to be closed.
#[derive(Default)]
pub(super) struct ClosingBatches(HashMap<usize, Vec<BatchId>>);

impl ClosingBatches {
    pub(super) fn add(&mut self, ledger: usize, batch: BatchId) {
        self.0.entry(ledger).or_default().push(batch);
    }

    pub(super) fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Closes many batches at once, because each call costs its ledger a commit. What a ledger does not confirm waits
    /// for the next call.
    pub(super) async fn finish(&mut self, ledgers: &[Arc<dyn KeyLedger>]) {
        for (ledger, batches) in std::mem::take(&mut self.0) {
            if let Err(error) = ledgers[ledger].close(&batches).await {
                report(&error);
                self.0.insert(ledger, batches);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_name_reads_back_and_has_one_spelling() {
        for to in [
            Destination::Pool(0),
            Destination::Pool(12),
            Destination::Buffer,
        ] {
            for owner in [0, 0xf00d, u64::MAX] {
                let owner = BatchOwner(owner);
                let name = BatchName {
                    owner,
                    to,
                    number: 7,
                };
                assert_eq!(name.to_string().parse(), Ok(name));
            }
        }
        let name: BatchName = "000000000000f00d.3.1".parse().unwrap();
        let to = Destination::Pool(3);
        assert_eq!((name.owner, name.to), (BatchOwner(0xf00d), to));
        for foreign in [
            "",
            "by hand",
            "f00d.3.1",
            "000000000000f00d.3",
            "000000000000f00d.03.1",
            "000000000000f00d.ring.1",
            "000000000000f00d.3.1.1",
            "000000000000F00D.3.1",
        ] {
            assert_eq!(foreign.parse::<BatchName>(), Err(InvalidBatchName));
        }
    }

    #[test]
    fn mutated_names_are_refused_or_spelled_in_the_one_way() {
        let samples = ["00000000000000ff.buffer.1", "ffffffffffffffff.12.340"];
        curt_testkit::fuzz::Fuzz::new("batch names", samples)
            .with_words([".", "buffer", "+1", "0"])
            .run_texts(|text| {
                let name = text.parse::<BatchName>();
                if let Ok(name) = name {
                    assert_eq!(name.to_string(), text);
                }
                name.is_ok()
            });
    }
}
