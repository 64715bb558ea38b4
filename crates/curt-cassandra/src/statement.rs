//! Statements, and what is known of conditional ones.

use curt_core::{PortError, PortResult};

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

    pub(crate) const fn serial(self) -> Self {
        let mode = Mode::SerialRead;
        Self { mode, ..self }
    }
}

/// What is known of a conditional write.
#[derive(Debug)]
pub(crate) enum Decided {
    Applied,
    /// The condition did not hold.
    Refused,
    /// It may have been applied, or be applied later.
    Unknown(PortError),
}

/// Why it is unknown whether an earlier try of a call was applied, if one is.
#[derive(Debug, Default)]
pub(crate) struct Doubt(Option<PortError>);

impl Doubt {
    pub(crate) fn note(&mut self, error: PortError) {
        self.0 = Some(error);
    }

    /// What fails now says nothing about what was tried before.
    pub(crate) fn keep<T>(&self, result: PortResult<T>) -> PortResult<T> {
        result.map_err(|error| self.0.clone().unwrap_or(error))
    }

    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// `answer`, unless an earlier try may have been applied.
    pub(crate) fn or<T>(self, answer: T) -> PortResult<T> {
        match self.0 {
            None => Ok(answer),
            Some(error) => Err(error),
        }
    }

    pub(crate) fn into_error(self) -> Option<PortError> {
        self.0
    }
}
