//! What the library has to say between calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use curt_core::{ErrorKind, PortError};
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;

/// How long a reason is waited for: times pause.
const LOOKS_MAX: u32 = 10;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Keeps the library's lines for those who look for a fault: failures are told by the calls that meet them. These say
/// that no broker answered; why is said here, and remembered.
#[derive(Clone, Debug, Default)]
pub(super) struct Quiet {
    last_error: Arc<Mutex<Option<(KafkaError, String)>>>,
}

impl Quiet {
    /// Adds to a failed call what the library said last about brokers. Blocks for a moment: it says so on another thread.
    pub(super) fn explain(&self, failed: PortError) -> PortError {
        let looks = (0..LOOKS_MAX).map(|_| {
            thread::sleep(LOOK_EVERY);
            self.lock().clone()
        });
        let Some((error, reason)) = looks.flatten().next() else {
            return failed;
        };
        let kind = match error.rdkafka_error_code() {
            // The brokers answered, and another try will end the same way.
            Some(RDKafkaErrorCode::Authentication) => ErrorKind::Invalid,
            _ => failed.kind,
        };
        let detail = format!("{}: {reason}", failed.detail);
        PortError::new(kind, failed.backend, failed.op, detail).with_source(error)
    }

    /// What was said before means nothing any more.
    pub(super) fn note_answer(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<(KafkaError, String)>> {
        let locked = self.last_error.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Quiet {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        note_line(level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        note_error(&error, reason);
        // The one that follows any other.
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::AllBrokersDown) {
            *self.lock() = Some((error, reason.to_owned()));
        }
    }
}

impl ConsumerContext for Quiet {}

impl ProducerContext for Quiet {
    type DeliveryOpaque = ();

    fn delivery(&self, _result: &DeliveryResult<'_>, (): ()) {}
}

pub(super) fn note_line(level: RDKafkaLogLevel, facility: &str, line: &str) {
    tracing::debug!(?level, facility, line, "kafka client");
}

pub(super) fn note_error(error: &KafkaError, reason: &str) {
    tracing::debug!(%error, reason, "kafka client failed");
}
