//! Exit codes, so that scripts and service managers can tell failures apart without reading messages.

use std::fmt;

use curt_accounts::AccountError;
use curt_core::{ErrorKind, PortError};

use crate::config::ConfigError;

/// Why a command failed, as its exit code tells. Code 2, wrong usage, is the argument parser's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitReason {
    Other,
    NotFound,
    Refused,
    NotPermitted,
    Unreachable,
    Config,
}

impl ExitReason {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Other => 1,
            Self::NotFound => 3,
            Self::Refused => 4,
            Self::NotPermitted => 5,
            Self::Unreachable => 6,
            // EX_CONFIG of sysexits.h.
            Self::Config => 78,
        }
    }

    /// Finds the reason among the causes of an error.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        error.chain().find_map(reason).unwrap_or(Self::Other)
    }
}

/// The table of `curt --help` and of the README.
pub(crate) const HELP: &str = "\
Exit codes:
  0   done
  1   failed for another reason
  2   wrong usage: an argument is missing, unknown or malformed
  3   there is no such link, user or API key
  4   refused: the input is not valid, or contradicts what is there
  5   not permitted: the API key is missing, wrong, or lacks the scope
  6   no answer from the server or database, or too busy: try again
  78  the configuration cannot be used, or leads to no data";

/// An error of a command with its own exit code.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) reason: ExitReason,
    message: String,
}

impl CommandError {
    pub(crate) fn new(reason: ExitReason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CommandError {}

fn reason(cause: &(dyn std::error::Error + 'static)) -> Option<ExitReason> {
    if cause.is::<ConfigError>() {
        return Some(ExitReason::Config);
    }
    if let Some(error) = cause.downcast_ref::<CommandError>() {
        return Some(error.reason);
    }
    if let Some(error) = cause.downcast_ref::<AccountError>() {
        return Some(account_reason(error));
    }
    cause.downcast_ref::<PortError>().map(port_reason)
}

fn account_reason(error: &AccountError) -> ExitReason {
    match error {
        AccountError::NotFound => ExitReason::NotFound,
        AccountError::Store(error) => port_reason(error),
        AccountError::WrongCredentials
        | AccountError::SignUpClosed
        | AccountError::InviteInvalid
        | AccountError::SetupClosed => ExitReason::NotPermitted,
        _ => ExitReason::Refused,
    }
}

fn port_reason(error: &PortError) -> ExitReason {
    match error.kind {
        ErrorKind::Invalid => ExitReason::Refused,
        _ if error.is_transient() => ExitReason::Unreachable,
        _ => ExitReason::Other,
    }
}
