//! K-2: where every key is, to the key.
//!
//! ```text
//! minted + recycled = free + moving + pooled + buffered + used + quarantined + leaked
//! ```
//! | stage | obtained from |
//! |---|---|
//! | minted, recycled, free | the ledgers' own counts |
//! | open | the ledgers' counts of keys in open batches; not a stage of its own, it overlaps the ones below |
//! | moving | the keysyncs: keys in their hands between a ledger and a pool |
//! | pooled | the pools' depths |
//! | buffered | the rings of all processes, as they say themselves |
//! | used | links with a key of the supply, and the earlier lives of keys that were recycled |
//! | quarantined | tombstones of such links |
//! | leaked | the difference: everything that no stage knows |
//!
//! The numbers are read one after the other while work goes on. A key that was taken and whose link is being stored
//! counts as leaked for that moment; what other processes hold is up to a tick old, and what a dead one held counts as
//! buffered until its entry in the roster has run out. What stays is truly lost: the ring of a crashed process whose pool
//! outlives it, a key that met an existing link, a key whose create failed, a tombstone
//! that was released and whose key never came back. (Recycled keys that were no ledger's before can hide some of the
//! last kind.)

use curt_core::link::KeyOrigin;
use curt_core::ports::{LedgerCounts, LinkCounts};

use crate::presence::Held;

/// Keys by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyAccounts {
    pub minted: u64,
    pub recycled: u64,
    pub free: u64,
    pub open: u64,
    pub moving: u64,
    pub pooled: u64,
    pub buffered: u64,
    pub used: u64,
    pub quarantined: u64,
    pub leaked: u64,
}

impl KeyAccounts {
    /// The stages by the names that the metric shows.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("minted", self.minted),
            ("recycled", self.recycled),
            ("free", self.free),
            ("open", self.open),
            ("moving", self.moving),
            ("pooled", self.pooled),
            ("buffered", self.buffered),
            ("used", self.used),
            ("quarantined", self.quarantined),
            ("leaked", self.leaked),
        ]
        .into_iter()
    }

    /// Whether both sides of K-2 are equal. They are, unless a count was read while it was ahead of the others.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.minted + self.recycled == self.found() + self.leaked
    }

    fn found(&self) -> u64 {
        self.free + self.moving + self.pooled + self.buffered + self.used + self.quarantined
    }

    pub(crate) fn with_difference_as_leaked(mut self) -> Self {
        self.leaked = (self.minted + self.recycled).saturating_sub(self.found());
        self
    }
}

/// The accounts of the strategies with a ledger, from what each stage says.
pub(crate) fn total(
    ledgers: impl Iterator<Item = LedgerCounts>,
    pooled: u64,
    held: Held,
    links: &LinkCounts,
) -> KeyAccounts {
    let mut accounts = KeyAccounts {
        pooled,
        moving: held.moving,
        buffered: held.ring,
        ..KeyAccounts::default()
    };
    for counts in ledgers {
        accounts.minted += counts.minted;
        accounts.recycled += counts.recycled;
        accounts.free += counts.free;
        accounts.open += counts.open;
    }
    let created = links.created_from(KeyOrigin::Ledger);
    let released = links.released_from_ledger;
    accounts.quarantined = links.deleted_from_ledger;
    let on_links = created.saturating_sub(accounts.quarantined + released);
    accounts.used = on_links + released.min(accounts.recycled);
    accounts.with_difference_as_leaked()
}
