//! What is known of reads and of conditional writes.

use curt_core::{PortError, PortResult};

/// What a read must see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadMode {
    /// What was acknowledged.
    Acknowledged,
    /// What was decided, acknowledged or not.
    Decided,
}

/// What is known of a conditional write.
#[derive(Debug)]
pub enum Decided {
    Applied,
    /// The condition did not hold.
    Refused,
    /// It may have been applied, or be applied later.
    Unknown(PortError),
}

impl Decided {
    /// Whether it was applied, for writes that may be left in doubt.
    pub fn into_result(self) -> PortResult<bool> {
        match self {
            Self::Applied => Ok(true),
            Self::Refused => Ok(false),
            Self::Unknown(error) => Err(error),
        }
    }
}

/// Why it is unknown whether an earlier try of a call was applied, if one is.
#[derive(Debug, Default)]
pub struct Doubt(Option<PortError>);

impl Doubt {
    pub fn note(&mut self, error: PortError) {
        self.0 = Some(error);
    }

    /// What fails now says nothing about what was tried before.
    pub fn keep<T>(&self, result: PortResult<T>) -> PortResult<T> {
        result.map_err(|error| self.0.clone().unwrap_or(error))
    }

    /// Why, once: what follows is a new try.
    pub fn take(&mut self) -> Option<PortError> {
        self.0.take()
    }

    /// `answer`, unless an earlier try may have been applied.
    pub fn or<T>(self, answer: T) -> PortResult<T> {
        match self.0 {
            None => Ok(answer),
            Some(error) => Err(error),
        }
    }

    #[must_use]
    pub fn into_error(self) -> Option<PortError> {
        self.0
    }
}

/// A part of all rows of one kind, in an order of the engine.
#[derive(Clone, Debug)]
pub struct ScanPart<Row> {
    pub rows: Vec<Row>,
    /// Where the next part begins. `None`: this is the last.
    pub next: Option<Box<str>>,
}

/// A random number that says which call wrote a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub [u8; 16]);

impl Mark {
    #[must_use]
    pub fn random() -> Self {
        Self(rand::random())
    }
}
