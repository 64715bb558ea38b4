//! What Kafka's errors mean for the caller.

use curt_core::{ErrorKind, PortError};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::BACKEND;

pub(super) fn of(op: &'static str, error: KafkaError) -> PortError {
    use RDKafkaErrorCode as Code;
    let kind = match error.rdkafka_error_code() {
        Some(Code::QueueFull | Code::ThrottlingQuotaExceeded) => ErrorKind::Throttled,
        // The request may have reached a broker.
        Some(Code::MessageTimedOut | Code::RequestTimedOut | Code::OperationTimedOut) => {
            ErrorKind::Timeout
        }
        Some(
            Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::SaslAuthenticationFailed
            | Code::MessageSizeTooLarge
            | Code::InvalidTopic,
        ) => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    };
    PortError::new(kind, BACKEND, op, error.to_string()).with_source(error)
}

pub(super) fn timeout(op: &'static str, detail: impl Into<String>) -> PortError {
    PortError::new(ErrorKind::Timeout, BACKEND, op, detail)
}

pub(super) fn of_thread(op: &'static str, error: std::io::Error) -> PortError {
    let detail = "no thread could be started";
    PortError::new(ErrorKind::Unavailable, BACKEND, op, detail).with_source(error)
}
