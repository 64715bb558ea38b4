//! K-2: where every key is, to the key.
//!
//! ```text
//! minted + recycled + duplicated = free + in_transit + pooled + buffered + used + quarantined + leaked
//! ```
//! | stage | obtained from |
//! |---|---|
//! | minted, recycled, free | the ledgers' own counts |
//! | open | the ledgers' counts of keys in open batches; not a stage of its own, it overlaps the ones below |
//! | in_transit | the keysyncs, by their heartbeats: keys between a ledger and a pool |
//! | pooled | the pools' depths |
//! | buffered | the buffers of all instances, by their heartbeats |
//! | used | links with a key of the supply, and the earlier lives of keys that were recycled |
//! | quarantined | tombstones of such links |
//! | duplicated | keys that are in two of these stages, because a pool came back with old data: by an [`audit`] |
//! | leaked | the difference: everything that no stage knows |
//!
//! Counts alone cannot tell a key that leaked from one that is in two stages: the two cancel. So without an audit only
//! their difference is known: `leaked` is how many more leaked than are duplicated, or `duplicated` how many more are
//! duplicated than leaked, and then the counts do not balance. An audit compares the keys themselves in pools,
//! buffers and on links; where nothing moves meanwhile, it makes both numbers exact. It does not read the ledgers: a
//! keys database that lost what it had minted, or has keys free again that it gave away, does not balance with an audit
//! either.
//!
//! The numbers are read one after the other while work goes on. A key that was taken and whose link is being stored
//! counts as leaked for that moment; what other instances hold is up to a tick old, and what a dead one held counts as
//! buffered until its heartbeat has run out. What stays is truly lost: the buffer of a crashed process that was filled
//! from a pool, a key that met an existing link, a key whose create failed, a tombstone
//! that was released and whose key never came back. (Recycled keys that were no ledger's before can hide some of the
//! last kind.)

mod audit;
mod balance;

pub use self::audit::{Duplicates, KeyAudit};
pub use self::balance::BalanceWatch;

use curt_core::link::KeyOrigin;
use curt_core::ports::{LedgerCounts, LinkCounts};

use crate::heartbeat::Holdings;

/// Keys by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCounts {
    pub minted: u64,
    pub recycled: u64,
    pub free: u64,
    pub open: u64,
    pub in_transit: u64,
    pub pooled: u64,
    pub buffered: u64,
    pub used: u64,
    pub quarantined: u64,
    pub duplicated: u64,
    pub leaked: u64,
    /// The keys were compared: `duplicated` and `leaked` are numbers of their own, and not their difference.
    pub is_audited: bool,
}

impl KeyCounts {
    /// The stages by the names that the metric shows.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("minted", self.minted),
            ("recycled", self.recycled),
            ("free", self.free),
            ("open", self.open),
            ("in_transit", self.in_transit),
            ("pooled", self.pooled),
            ("buffered", self.buffered),
            ("used", self.used),
            ("quarantined", self.quarantined),
            ("duplicated", self.duplicated),
            ("leaked", self.leaked),
        ]
        .into_iter()
    }

    /// Whether both sides of K-2 are equal. Without an audit they are not when more keys are found than were made.
    #[must_use]
    pub fn balances(&self) -> bool {
        let made = self.minted + self.recycled + self.duplicated;
        made == self.found() + self.leaked && (self.is_audited || self.duplicated == 0)
    }

    fn found(&self) -> u64 {
        self.free + self.in_transit + self.pooled + self.buffered + self.used + self.quarantined
    }

    /// Fills in what is left over by the counts.
    pub(crate) fn with_difference(mut self) -> Self {
        let (made, found) = (self.minted + self.recycled, self.found());
        self.leaked = made.saturating_sub(found);
        self.duplicated = found.saturating_sub(made);
        self
    }

    /// Takes what no stage knows and open batches can hold for the buffer of a process that does not tell.
    pub(crate) fn with_open_as_buffered(mut self) -> Self {
        let held = self.leaked.min(self.open);
        self.buffered += held;
        self.leaked -= held;
        self
    }

    /// Fills in what an audit has found.
    pub(crate) fn with_audit(mut self, duplicates: &Duplicates) -> Self {
        self.is_audited = true;
        self.duplicated = duplicates.total();
        let made = self.minted + self.recycled + self.duplicated;
        self.leaked = made.saturating_sub(self.found());
        self
    }
}

/// The counts of the strategies with a ledger, from what each stage says.
pub(crate) fn total(
    ledgers: impl Iterator<Item = LedgerCounts>,
    pooled: u64,
    held: Holdings,
    links: &LinkCounts,
) -> KeyCounts {
    let mut total = KeyCounts {
        pooled,
        in_transit: held.in_transit,
        buffered: held.buffered,
        ..KeyCounts::default()
    };
    for counts in ledgers {
        total.minted += counts.minted;
        total.recycled += counts.recycled;
        total.free += counts.free;
        total.open += counts.open;
    }
    let created = links.created_from(KeyOrigin::Ledger);
    let released = links.released_from_ledger;
    total.quarantined = links.deleted_from_ledger;
    let on_links = created.saturating_sub(total.quarantined + released);
    total.used = on_links + released.min(total.recycled);
    total.with_difference()
}
