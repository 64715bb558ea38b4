//! What HDFS's errors mean for the caller.

use std::io::ErrorKind as IoKind;

use curt_core::{ErrorKind, PortError};
use hdfs_native::HdfsError;

use crate::key_layout::Operation;

/// Java classes of refusals that no later call changes, by the end of their names.
const LASTING: [&str; 8] = [
    "AccessControlException",
    "AuthorizationException",
    "InvalidToken",
    "InvalidPathException",
    "ParentNotDirectoryException",
    "IllegalArgumentException",
    "LeaseExpiredException",
    "FileNotFoundException",
];

pub(super) fn of(operation: Operation, error: HdfsError) -> PortError {
    let kind = kind_of(&error);
    let detail = match &error {
        // The stack of the server's Java machine tells an operator nothing.
        HdfsError::RPCError(class, message) | HdfsError::FatalRPCError(class, message) => {
            let first_line = message.lines().next().unwrap_or_default();
            format!("{}: {first_line}", short(class))
        }
        other => other.to_string(),
    };
    operation.error(kind, detail).with_source(error)
}

fn kind_of(error: &HdfsError) -> ErrorKind {
    match error {
        HdfsError::IOError(error) => match error.kind() {
            // The question was on its way.
            IoKind::ConnectionReset
            | IoKind::ConnectionAborted
            | IoKind::BrokenPipe
            | IoKind::UnexpectedEof
            | IoKind::TimedOut => ErrorKind::Timeout,
            _ => ErrorKind::Unavailable,
        },
        HdfsError::RPCError(class, _) | HdfsError::FatalRPCError(class, _) => {
            if LASTING.contains(&short(class)) {
                ErrorKind::Invalid
            } else {
                // Standby, safe mode, no DataNode to write to, quota used up, and what later versions add.
                ErrorKind::Unavailable
            }
        }
        HdfsError::ChecksumError => ErrorKind::Corrupt,
        HdfsError::DataTransferError(_)
        | HdfsError::BlocksNotFound(_)
        | HdfsError::OperationFailed(_)
        | HdfsError::ErasureCodingError(_) => ErrorKind::Unavailable,
        HdfsError::InvalidRPCResponse(_) => ErrorKind::Timeout,
        HdfsError::InternalError(_) => ErrorKind::Bug,
        // Paths, addresses, configuration, credentials.
        _ => ErrorKind::Invalid,
    }
}

/// `None` where there is no such file or folder.
pub(super) async fn absent_as_none<T>(
    answer: impl Future<Output = Result<T, HdfsError>>,
) -> Result<Option<T>, HdfsError> {
    match answer.await {
        Err(HdfsError::FileNotFound(_)) => Ok(None),
        Err(HdfsError::RPCError(class, _)) if short(&class) == "FileNotFoundException" => Ok(None),
        answer => answer.map(Some),
    }
}

/// The name of a Java class without its package.
fn short(class: &str) -> &str {
    class.rsplit(['.', '$']).next().unwrap_or(class)
}
