//! What SQLite's errors mean for a caller, in words that say what to do.

use std::path::Path;

use curt_core::{ErrorKind, PortError};
use rusqlite::ErrorCode;
use rusqlite::ffi;

use super::lock_file;

pub(super) const BACKEND: &str = "sqlite";

/// A failure that can be told to every caller of a commit group.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    pub(super) detail: String,
    pub(super) scope: FailureScope,
    cause: Option<Cause>,
}

/// How far a failure goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureScope {
    /// Only the call that met it; the others of its group are tried again without it.
    Call,
    /// The transaction with everybody in it.
    Group,
    /// What the disk holds is no longer known: nothing is written until a restart.
    Engine,
}

/// The engine's own words. `rusqlite::Error` cannot be shared between several callers, this can.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(String);

impl Failure {
    pub(super) fn new(kind: ErrorKind, scope: FailureScope, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            scope,
            cause: None,
        }
    }

    pub(super) fn from_engine(error: &rusqlite::Error, path: &Path) -> Self {
        let (kind, scope, detail) = match error {
            rusqlite::Error::SqliteFailure(code, _) => explain(*code, path),
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => (
                ErrorKind::Corrupt,
                FailureScope::Call,
                format!(
                    "a row of {} does not hold what this version writes: restore the file from a backup",
                    path.display()
                ),
            ),
            _ => (
                ErrorKind::Bug,
                FailureScope::Call,
                "the statement cannot be run; please report this".to_owned(),
            ),
        };
        Self {
            kind,
            detail,
            scope,
            cause: Some(Cause(error.to_string())),
        }
    }

    pub(super) fn for_call(&self, op: &'static str) -> PortError {
        let error = PortError::new(self.kind, BACKEND, op, self.detail.clone());
        match &self.cause {
            Some(cause) => error.with_source(cause.clone()),
            None => error,
        }
    }
}

/// The failure of a call outside any commit group.
pub(super) fn port_error(op: &'static str, path: &Path, error: &rusqlite::Error) -> PortError {
    Failure::from_engine(error, path).for_call(op)
}

/// What SQLite itself would say of a full disk.
pub(super) fn disk_full(op: &'static str, path: &Path) -> PortError {
    let full = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_FULL), None);
    port_error(op, path, &full)
}

fn explain(code: ffi::Error, path: &Path) -> (ErrorKind, FailureScope, String) {
    let file = path.display();
    let folder = path.parent().unwrap_or(Path::new(".")).display();
    match code.code {
        ErrorCode::DiskFull => (
            ErrorKind::Unavailable,
            FailureScope::Group,
            format!("the disk is full: free space under {folder}; redirects go on"),
        ),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            let holder = lock_file::foreign_writer(path).map_or_else(
                || "another process".to_owned(),
                |pid| format!("process {pid}"),
            );
            (
                ErrorKind::Unavailable,
                FailureScope::Group,
                format!("{holder} is writing to {file} and does not let go: end it, or wait"),
            )
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => (
            ErrorKind::Unavailable,
            FailureScope::Group,
            format!(
                "{file} may not be written: check the owner and mode of the file and of {folder}"
            ),
        ),
        ErrorCode::CannotOpen => (
            ErrorKind::Unavailable,
            FailureScope::Group,
            format!(
                "{file} cannot be opened: check that {folder} exists and that this user may write there"
            ),
        ),
        ErrorCode::SystemIoFailure => explain_io(code, &file.to_string()),
        ErrorCode::DatabaseCorrupt => (
            ErrorKind::Corrupt,
            FailureScope::Group,
            format!("{file} is damaged: stop the server and restore the file from a backup"),
        ),
        ErrorCode::NotADatabase => (
            ErrorKind::Corrupt,
            FailureScope::Group,
            format!("{file} is not a data file of curt: name another file, or restore a backup"),
        ),
        ErrorCode::OutOfMemory => (
            ErrorKind::Unavailable,
            FailureScope::Group,
            "there is no memory left: lower the cache settings".to_owned(),
        ),
        ErrorCode::OperationInterrupted => (
            ErrorKind::Unavailable,
            FailureScope::Call,
            "the read was ended, because its caller left or the data file is being closed"
                .to_owned(),
        ),
        ErrorCode::TooBig => (
            ErrorKind::Invalid,
            FailureScope::Call,
            "a value is too long to be stored".to_owned(),
        ),
        _ => (
            ErrorKind::Bug,
            FailureScope::Call,
            "the statement cannot be run; please report this".to_owned(),
        ),
    }
}

/// After a failed sync the kernel may count the lost pages as written, and the next sync would succeed without them.
/// Only a restart, which reads the file again, is sure of what the disk holds.
fn explain_io(code: ffi::Error, file: &str) -> (ErrorKind, FailureScope, String) {
    match code.extended_code {
        ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC => (
            ErrorKind::Timeout,
            FailureScope::Engine,
            format!(
                "the disk under {file} failed to keep a write, so it is unknown whether it happened: \
                 check the disk (dmesg), then restart; redirects go on, nothing is written until then"
            ),
        ),
        ffi::SQLITE_IOERR_CORRUPTFS | ffi::SQLITE_IOERR_DATA => (
            ErrorKind::Corrupt,
            FailureScope::Group,
            format!("{file} reads back wrong: check the disk and restore the file from a backup"),
        ),
        _ => (
            ErrorKind::Unavailable,
            FailureScope::Group,
            format!("the disk under {file} failed: check it (dmesg) and the file system"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(extended_code: i32) -> Failure {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(extended_code), None);
        Failure::from_engine(&error, Path::new("data/curt.db"))
    }

    #[test]
    fn a_failed_sync_stops_all_writing_and_a_full_disk_does_not() {
        assert_eq!(failure(ffi::SQLITE_IOERR_FSYNC).scope, FailureScope::Engine);
        assert_eq!(failure(ffi::SQLITE_FULL).scope, FailureScope::Group);
        assert_eq!(
            failure(ffi::SQLITE_CONSTRAINT_NOTNULL).scope,
            FailureScope::Call
        );
    }

    #[test]
    fn the_text_names_the_place_and_the_way_out() {
        let full = failure(ffi::SQLITE_FULL);
        assert_eq!(full.kind, ErrorKind::Unavailable);
        assert_eq!(
            full.detail,
            "the disk is full: free space under data; redirects go on"
        );
        assert_eq!(failure(ffi::SQLITE_CORRUPT).kind, ErrorKind::Corrupt);
        assert!(
            failure(ffi::SQLITE_READONLY)
                .detail
                .contains("data/curt.db may not be written")
        );
    }
}
