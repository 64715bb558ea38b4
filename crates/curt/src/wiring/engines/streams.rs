//! The click stream that processes share.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{ClickSink, ClickSource, DeadLetters, FlushChannel};
use curt_core::{PortResult, UnixMillis};
#[cfg(feature = "kafka")]
use curt_kafka::KafkaMetrics;
use prometheus_client::registry::Registry;

#[cfg(feature = "kafka")]
use super::Opened;
use super::{EngineAddress, EngineKind, Engines, Part, require, unserved};

/// Gives the next record, or `None` after a wait. Blocks.
pub(crate) type StreamTail = Box<dyn Fn(Duration) -> PortResult<Option<Vec<u8>>>>;

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

    /// How reports have clicks written that are aggregated elsewhere.
    pub(crate) fn flush_channel(
        &mut self,
        address: &EngineAddress,
    ) -> PortResult<Arc<dyn FlushChannel>> {
        match self.engine(Part::Stream, address)? {
            #[cfg(feature = "kafka")]
            Opened::Kafka(kafka) => Ok(kafka.flush_channel()),
            _ => Err(unserved(address)),
        }
    }

    /// What gives the records of the stream as they come.
    #[cfg_attr(
        not(feature = "kafka"),
        expect(unused_variables, reason = "no engine of this build has such a stream")
    )]
    pub(crate) async fn stream_tail(
        &mut self,
        address: &EngineAddress,
        since: Option<UnixMillis>,
    ) -> PortResult<StreamTail> {
        match self.engine(Part::Stream, address)? {
            #[cfg(feature = "kafka")]
            Opened::Kafka(kafka) => {
                let tail = kafka.tail(since).await?;
                Ok(Box::new(move |wait| tail.next(wait)))
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
