//! What the library has to say between calls.

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;

/// Keeps the library's lines for those who look for a fault: failures are told by the calls that meet them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        note_line(level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        note_error(&error, reason);
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
