//! Statements.

use curt_adapter_kit::wide_column::ReadMode;

/// How a statement is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    /// Sees what was acknowledged.
    Read,
    /// Sees what was decided, acknowledged or not, and ends what was under way: an earlier write that is not seen then
    /// is one that its coordinator has yet to propose.
    SerialRead,
    /// An unconditional write that may be repeated. Never to a partition with conditional ones.
    Write,
    /// A conditional write (a lightweight transaction).
    Conditional,
}

/// A statement; `KEYSPACE` in its text stands for the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cql {
    pub(crate) mode: Mode,
    pub(crate) text: &'static str,
}

impl Cql {
    pub(crate) const fn read(text: &'static str) -> Self {
        let mode = Mode::Read;
        Self { mode, text }
    }

    pub(crate) const fn write(text: &'static str) -> Self {
        let mode = Mode::Write;
        Self { mode, text }
    }

    pub(crate) const fn conditional(text: &'static str) -> Self {
        let mode = Mode::Conditional;
        Self { mode, text }
    }

    /// A read that sees what `mode` says.
    pub(crate) const fn at(self, mode: ReadMode) -> Self {
        match mode {
            ReadMode::Acknowledged => self,
            ReadMode::Decided => self.serial(),
        }
    }

    pub(crate) const fn serial(self) -> Self {
        let mode = Mode::SerialRead;
        Self { mode, ..self }
    }
}
