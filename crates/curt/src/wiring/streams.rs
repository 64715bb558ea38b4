//! The click stream that processes share, by the configuration.

use std::sync::Arc;

use curt_core::ports::{ClickSink, FlushChannel};
use curt_core::{SystemClock, UnixMillis};
use curt_sqlite::Access;
use prometheus_client::registry::Registry;

use super::engines::{StreamEnd, StreamTail};
use super::{EngineAddress, Part, Stores, engines, named};
use crate::config::Config;

impl Stores {
    /// The write end of the stream that processes share.
    pub(crate) fn open_stream_sink(
        &mut self,
        address: &EngineAddress,
    ) -> anyhow::Result<Arc<dyn ClickSink>> {
        named(Part::Stream, self.engines.stream_sink(address))
    }

    /// The read end of the stream that processes share.
    pub(crate) fn open_stream_end(
        &mut self,
        address: &EngineAddress,
        registry: &mut Registry,
    ) -> anyhow::Result<StreamEnd> {
        named(Part::Stream, self.engines.stream_end(address, registry))
    }

    /// How reports have clicks written that are aggregated elsewhere.
    pub(crate) fn open_flush_channel(
        &mut self,
        address: &EngineAddress,
    ) -> anyhow::Result<Arc<dyn FlushChannel>> {
        named(Part::Stream, self.engines.flush_channel(address))
    }
}

/// The write end of a stream, for a command that writes nothing else.
pub(crate) fn stream_sink(
    config: &Config,
    address: &EngineAddress,
) -> anyhow::Result<Arc<dyn ClickSink>> {
    let clock = Arc::new(SystemClock);
    let mut engines = engines(config, "a command", Access::Command, clock);
    named(Part::Stream, engines.stream_sink(address))
}

/// What gives the records of a stream as they come.
pub(crate) async fn stream_tail(
    config: &Config,
    address: &EngineAddress,
    since: Option<UnixMillis>,
) -> anyhow::Result<StreamTail> {
    let clock = Arc::new(SystemClock);
    let mut engines = engines(config, "a command", Access::Command, clock);
    named(Part::Stream, engines.stream_tail(address, since).await)
}
