//! The click stream in Kafka: a sink for the forwarders of redirecting servers, a source for consumers, dead letters.
//!
//! # Addresses
//! `kafka://user:password@h1:9092,h2/url-access-events?group=curt-clicks`. The port is 9092 where none is named. The topic,
//! its dead letters (`….dead-letters`) and questions for flushes (`….flushes`) are made when they are absent.
//!
//! Parameters: `tls=true` encrypts, and checks certificate and name by the authorities of the system, or by those in
//! `ca=FILE`, which alone means the same; `sasl` tells how an account is told: `plain` (the default), `scram-sha-256` or
//! `scram-sha-512`. TLS and SCRAM are for builds with the feature `tls`.
//!
//! # Each record once
//! Nothing is asked of Kafka but that a record that it acknowledged stays (`acks=all`) and that a partition has an order.
//! A sink gives each record the number of its producer in a header ([`position`]); whatever is sent again after a crash or
//! a lost answer goes to the same partition, and the source leaves out what it has given before ([`seen`]).
//!
//! The offset up to which a partition is counted is the business of the click store, which moves it together with the
//! counts (C-1). What the group commits in Kafka is a hint: which records had been seen at an earlier offset. From there
//! on the partition is read again, without giving records before the offset that is asked for. A hint that is lost or old
//! costs time and nothing else.
//!
//! # Partitions
//! Neither link nor visitor chooses the partition, but producer and sequence number: a link that everybody follows loads
//! all partitions alike. The number of partitions must not change while spools hold records that Kafka may have already.
//!
//! # Consumers
//! Members of one group share the partitions. A member that stood still and comes back is refused by the click store.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod address;
mod context;
mod dead_letters;
mod failure;
mod flush_channel;
mod group;
mod metrics;
mod position;
mod reader;
mod seen;
mod sink;
mod source;
mod tail;
mod topics;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use curt_adapter_kit::off_runtime;
use curt_core::{PortResult, UnixMillis};
use rdkafka::ClientConfig;
use rdkafka::producer::ThreadedProducer;
use tokio::sync::OnceCell;

pub use dead_letters::KafkaDeadLetters;
pub use flush_channel::KafkaFlushChannel;
pub use metrics::KafkaMetrics;
pub use sink::KafkaSink;
pub use source::KafkaSource;
pub use tail::KafkaTail;

use address::Route;
use context::Quiet;

/// Whether this build has TLS and SCRAM.
pub const HAS_TLS: bool = cfg!(feature = "tls");
/// The adapter's name in errors.
const BACKEND: &str = "kafka";
/// For an answer to a question about topics or offsets.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// How Kafka is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KafkaSettings {
    /// How long a record may take until all replicas in sync have it.
    pub delivery_timeout: Duration,
    /// After how long without a sign of life the group gives a consumer's partitions to others.
    pub session_timeout: Duration,
    /// Of a topic that is made because it is absent.
    pub partitions: u32,
    /// The same; `None`: as the brokers have it.
    pub replicas: Option<u32>,
    /// How long a broker holds a question for records that it does not have yet.
    pub fetch_wait: Duration,
}

impl Default for KafkaSettings {
    fn default() -> Self {
        Self {
            delivery_timeout: Duration::from_secs(30),
            session_timeout: Duration::from_secs(10),
            partitions: 12,
            replicas: None,
            fetch_wait: Duration::from_millis(100),
        }
    }
}

/// A client that sends nothing. It tells what the library says between calls, which one for topics does not.
type Questions = Arc<ThreadedProducer<Quiet>>;

/// A topic of clicks.
pub struct Kafka {
    route: Route,
    settings: KafkaSettings,
    /// For questions that must not wait behind those for records. Made with the first one.
    questions: OnceLock<Questions>,
    /// How many partitions the topic has, once that is known.
    partitions: OnceCell<u32>,
}

impl Kafka {
    /// Reads the address. Connects with the first call, so that brokers that are away keep nobody from starting.
    pub fn open(address: &str, settings: KafkaSettings) -> PortResult<Arc<Self>> {
        Ok(Arc::new(Self {
            route: Route::parse(address)?,
            settings,
            questions: OnceLock::new(),
            partitions: OnceCell::new(),
        }))
    }

    /// The write end, for the forwarder of a server's spool.
    pub fn sink(self: &Arc<Self>) -> PortResult<Arc<KafkaSink>> {
        KafkaSink::open(Arc::clone(self)).map(Arc::new)
    }

    /// The read end. With the first question for its partitions the process becomes a member of the group.
    #[must_use]
    pub fn source(self: &Arc<Self>, metrics: KafkaMetrics) -> Arc<KafkaSource> {
        Arc::new(KafkaSource::new(Arc::clone(self), metrics))
    }

    /// Where records go that cannot be decoded.
    pub fn dead_letters(&self, metrics: KafkaMetrics) -> PortResult<Arc<KafkaDeadLetters>> {
        KafkaDeadLetters::open(self, metrics).map(Arc::new)
    }

    /// How reports have clicks written that were aggregated elsewhere.
    #[must_use]
    pub fn flush_channel(self: &Arc<Self>) -> Arc<KafkaFlushChannel> {
        Arc::new(KafkaFlushChannel::new(Arc::clone(self)))
    }

    /// Records as they come, for people who look on.
    pub async fn tail(&self, since: Option<UnixMillis>) -> PortResult<KafkaTail> {
        let partitions = self.partitions().await?;
        KafkaTail::open(self, partitions, since)
    }

    /// Whether a broker answers, with a question that changes nothing.
    pub async fn ping(self: &Arc<Self>) -> PortResult<()> {
        const PING: &str = "answer a ping";
        let kafka = Arc::clone(self);
        off_runtime(BACKEND, PING, move || {
            topics::ping(PING, &kafka.questions()?)
        })
        .await
    }

    /// What every client has in common.
    fn config(&self) -> ClientConfig {
        let mut config = self.route.config();
        config
            .set("client.id", "curt")
            .set("log.connection.close", "false")
            .set("reconnect.backoff.max.ms", "2000")
            .set("socket.keepalive.enable", "true");
        config
    }

    fn questions(&self) -> PortResult<Questions> {
        if let Some(client) = self.questions.get() {
            return Ok(Arc::clone(client));
        }
        let client = self.config().create_with_context(Quiet::default());
        let client = client.map_err(|error| failure::of("connect", error))?;
        Ok(Arc::clone(self.questions.get_or_init(|| Arc::new(client))))
    }

    async fn partitions(&self) -> PortResult<u32> {
        let known = self.partitions.get_or_try_init(|| topics::make(self));
        known.await.copied()
    }
}

impl std::fmt::Debug for Kafka {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kafka")
            .field("topic", &self.route.topic)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

fn milliseconds(time: Duration) -> String {
    time.as_millis().to_string()
}
