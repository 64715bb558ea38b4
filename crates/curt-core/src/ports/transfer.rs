use std::hash::Hash;

use async_trait::async_trait;

use crate::error::PortResult;

/// Everything that a store holds, item by item, so that it can be copied to another store, whichever engine each has.
#[async_trait]
pub trait Transfer<Item: Transferred>: Send + Sync {
    /// Returns a part of what the store has, behind the position `after`. Everything is there once. Reads a bounded number
    /// of rows: a part may be empty and still have a `next`. Not of one instant: what changes meanwhile may or may not be in
    /// it. A position of another engine is `Invalid`.
    async fn export_all(&self, after: Option<&str>) -> PortResult<TransferPart<Item>>;

    /// Puts items into the store, durably, each as [`Transferred::replaces`] decides by what is there.
    ///
    /// - *Absent*: it is added as it is.
    /// - *Duplicate*: what is newer stays, and so does what is something else under the same name, which the reply names.
    /// - *Called twice*: no change. *Timed out*: unknown, some may be there; safe to call again.
    async fn import_all(&self, items: &[Item]) -> PortResult<ImportReport>;
}

/// Something that a store keeps under a name.
pub trait Transferred: Clone + Eq + Hash + Send + Sync {
    /// The name, as a person would write it; no two items have the same.
    fn name(&self) -> Box<str>;

    /// What an import does where `there` is stored under the same name.
    fn replaces(&self, there: &Self) -> Replacement;
}

/// A part of everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferPart<Item> {
    pub items: Vec<Item>,
    /// `None`: this was the last.
    pub next: Option<Box<str>>,
}

/// What came of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Items that changed something.
    pub written: u64,
    /// Items that are older than what is there.
    pub outdated: u64,
    /// Names of items under which something else is stored.
    pub conflicts: Vec<Box<str>>,
}

/// What an import does with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// It is there already.
    Same,
    Write,
    /// What is there is newer.
    Outdated,
    /// What is there is something else.
    Conflict,
}

impl ImportReport {
    /// Counts one item, and returns whether it is to be written.
    pub fn count(&mut self, item: &impl Transferred, replacement: Replacement) -> bool {
        match replacement {
            Replacement::Same => {}
            Replacement::Write => self.written += 1,
            Replacement::Outdated => self.outdated += 1,
            Replacement::Conflict => self.conflicts.push(item.name()),
        }
        replacement == Replacement::Write
    }
}
