//! The click stream that processes share.

use std::sync::Arc;

use curt_core::PortResult;
use curt_core::ports::{ClickSink, ClickSource, DeadLetters};
#[cfg(feature = "kafka")]
use curt_kafka::KafkaMetrics;
use prometheus_client::registry::Registry;

use super::{EngineAddress, EngineKind, Engines, Opened, Part, require, unserved};

/// The read end of a stream, and where goes what cannot be read.
#[derive(Clone)]
pub(crate) struct StreamEnd {
    pub(crate) source: Arc<dyn ClickSource>,
    pub(crate) dead_letters: Arc<dyn DeadLetters>,
}

impl Engines {
    /// The write end of a stream that processes share.
    pub(crate) fn stream_sink(
        &mut self,
        address: &EngineAddress,
    ) -> PortResult<Arc<dyn ClickSink>> {
        match self.engine(Part::Stream, address)? {
            #[cfg(feature = "kafka")]
            Opened::Kafka(kafka) => Ok(kafka.sink()?),
            _ => Err(unserved(address)),
        }
    }

    /// The read end of a stream that processes share.
    #[cfg_attr(
        not(feature = "kafka"),
        expect(unused_variables, reason = "no engine of this build has such a stream")
    )]
    pub(crate) fn stream_end(
        &mut self,
        address: &EngineAddress,
        registry: &mut Registry,
    ) -> PortResult<StreamEnd> {
        match self.engine(Part::Stream, address)? {
            #[cfg(feature = "kafka")]
            Opened::Kafka(kafka) => {
                let metrics = KafkaMetrics::register(registry);
                Ok(StreamEnd {
                    source: kafka.source(metrics.clone()),
                    dead_letters: kafka.dead_letters(metrics)?,
                })
            }
            _ => Err(unserved(address)),
        }
    }

    /// A spool is opened where clicks are captured and counted.
    pub(super) fn check_stream(&mut self, address: &EngineAddress) -> PortResult<()> {
        match address.kind() {
            EngineKind::Kafka => self.engine(Part::Stream, address).map(drop),
            _ => require(Part::Stream, address),
        }
    }
}
