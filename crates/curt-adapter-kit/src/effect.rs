use std::fmt::Display;

use curt_core::ErrorKind;

/// What may have happened to the data of an SQL engine when a call breaks off without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: the call only reads, or its transaction was not asked to commit.
    None,
    /// Unknown: the commit may have been done and only its answer lost.
    Unknown,
}

impl Effect {
    pub fn of_breaking_off(self, address: &impl Display) -> (ErrorKind, String) {
        match self {
            Self::None => (
                ErrorKind::Unavailable,
                format!("{address} broke off; nothing was changed"),
            ),
            Self::Unknown => (
                ErrorKind::Timeout,
                format!(
                    "{address} broke off before it answered; it is unknown whether it committed"
                ),
            ),
        }
    }
}
