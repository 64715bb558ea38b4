//! A pipeline between a stream, a store in memory.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use curt_core::clock::ManualClock;
use curt_core::ports::{
    ClickCounters, ClickFilter, ClickQuery, ClickReports, ClickSink, ClickSource, ClickStore,
    HourRange, ProducerId, SequencedRecord, StreamPartition,
};
use curt_core::{
    Attribution, Click, ClickSubject, Day, Dimension, DomainId, PackedTags, UnixMillis,
};
use curt_memory::{MemoryClickCounters, MemoryClickStore, MemoryClickStream, MemoryDeadLetters};
use curt_testkit::sample::{NOW, OWNER, id};
use tokio_util::sync::CancellationToken;

use crate::classify::{CurrentReference, ReferenceData};
use crate::consume::{ConsumerMetrics, ConsumerPorts, ConsumerSettings, Pipeline};
use crate::record::{self, ClickRecord, Method, Outcome, UtmText};

pub(super) const BROWSER: &[u8] =
    b"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";

/// Writes after every poll, and does not wait.
pub(super) fn quick() -> ConsumerSettings {
    ConsumerSettings {
        window: Duration::ZERO,
        counters_every: Duration::ZERO,
        poll_max: 7,
        poll_wait: Duration::from_millis(1),
        poll_pause: Duration::ZERO,
        retry: Duration::from_millis(1),
        ..ConsumerSettings::default()
    }
}

pub(super) struct World {
    pub(super) stream: Arc<MemoryClickStream>,
    pub(super) store: Arc<MemoryClickStore>,
    pub(super) counters: Option<Arc<MemoryClickCounters>>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) dead_letters: Arc<MemoryDeadLetters>,
    pub(super) sequence: AtomicU64,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            stream: Arc::new(MemoryClickStream::new(1, 100_000)),
            store: Arc::default(),
            counters: None,
            clock: Arc::new(ManualClock::at(NOW)),
            dead_letters: Arc::default(),
            sequence: AtomicU64::new(0),
        }
    }

    /// One whose windows outlive the process.
    pub(super) fn with_counters() -> Self {
        Self {
            counters: Some(Arc::default()),
            ..Self::new()
        }
    }

    pub(super) fn ports(&self) -> ConsumerPorts {
        ConsumerPorts {
            source: self.stream.clone(),
            dead_letters: self.dead_letters.clone(),
            store: self.store.clone(),
            counters: self
                .counters
                .clone()
                .map(|counters| counters as Arc<dyn ClickCounters>),
            clock: self.clock.clone(),
            reference: CurrentReference::fixed(ReferenceData::default()),
        }
    }

    /// Runs a pipeline that is asked to end at once: it counts all that is there.
    pub(super) async fn drain(&self, settings: ConsumerSettings) {
        let stop = CancellationToken::new();
        stop.cancel();
        let pipeline = Pipeline::new(self.ports(), settings, ConsumerMetrics::default());
        pipeline.run(stop).await;
    }

    pub(super) async fn capture(&self, clicks: &[ClickRecord<'_>]) {
        self.append(clicks.iter().map(encoded)).await;
    }

    pub(super) async fn append(&self, records: impl IntoIterator<Item = Box<[u8]>>) {
        let sequenced = |bytes| SequencedRecord {
            sequence: self.sequence.fetch_add(1, Relaxed),
            bytes,
        };
        let records: Vec<_> = records.into_iter().map(sequenced).collect();
        self.stream.append(ProducerId(0), &records).await.unwrap();
    }

    pub(super) async fn total(&self, subject: &ClickSubject) -> u64 {
        let top = self
            .store
            .top(subject, Dimension::Class, HourRange::ALL, 9)
            .await;
        top.unwrap().total()
    }

    pub(super) async fn visitors(&self, subject: &ClickSubject) -> Vec<(Day, u64)> {
        let days = self.store.visitors(subject, Day::FIRST, Day::LAST).await;
        days.unwrap()
    }

    pub(super) async fn clicks(&self) -> Vec<Click> {
        let query = ClickQuery {
            subject: ClickSubject::Everything,
            from: UnixMillis(0),
            before: UnixMillis::MAX,
            filter: ClickFilter::default(),
            cursor: None,
            limit: 10_000,
        };
        self.store.clicks(&query).await.unwrap().clicks
    }

    /// Up to where the store has counted.
    pub(super) async fn offset(&self) -> u64 {
        let partition = StreamPartition {
            stream: self.stream.id(),
            number: 0,
        };
        self.store.offset(partition).await.unwrap()
    }
}

pub(super) fn link(key: &str) -> ClickSubject {
    ClickSubject::Link(id(key), 1)
}

pub(super) const OWNERS: ClickSubject = ClickSubject::Owner(OWNER);

pub(super) fn encoded(click: &ClickRecord<'_>) -> Box<[u8]> {
    let mut bytes = Vec::new();
    record::encode(click, &mut bytes);
    bytes.into_boxed_slice()
}

/// A human with a number clicks a link at [`NOW`].
pub(super) fn click(key: &str, visitor: u32) -> ClickRecord<'_> {
    ClickRecord {
        at: NOW,
        domain: DomainId::DEFAULT,
        key: key.as_bytes(),
        generation: 1,
        outcome: Outcome::Redirected,
        method: Method::Get,
        prefetch: false,
        address: IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + visitor)),
        agent: BROWSER,
        referrer: b"https://news.example/today",
        language: b"de-DE,de;q=0.9",
        utm: UtmText::default(),
        attribution: attribution(key),
    }
}

/// Whose the link is and which tags it has: "a" has the owner's, "b" has none, others have no owner.
fn attribution(key: &str) -> Attribution<'static> {
    match key {
        "a" => Attribution {
            owner: OWNER,
            tags: PackedTags::from_packed(b"\x03Red\x03red\x04blue"),
        },
        "b" => Attribution {
            owner: OWNER,
            ..Attribution::default()
        },
        _ => Attribution::default(),
    }
}
