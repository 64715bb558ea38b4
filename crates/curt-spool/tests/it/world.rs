//! A spool in a folder of its own, and clicks that carry a number.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use curt_clicks::capture::Capture;
use curt_clicks::record::{ClickRecord, Method, Outcome, UtmText, decode};
use curt_core::ports::{ClickSource, StreamRecord};
use curt_core::{Attribution, DomainId, PortResult, UnixMillis};
use curt_spool::{Spool, SpoolMetrics, SpoolSettings};
use tempfile::TempDir;

pub(crate) const NOW: UnixMillis = UnixMillis(1_790_000_000_000);

pub(crate) struct World {
    folder: TempDir,
    pub(crate) settings: SpoolSettings,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            settings: SpoolSettings::default(),
        }
    }

    /// In memory where the system has a place for that: hundreds of spools are opened, and a disk would be waited for.
    pub(crate) fn in_memory() -> Self {
        Self {
            folder: folder_in_memory(),
            ..Self::with_small_segments(1 << 20)
        }
    }

    /// With small files, so that there are many.
    pub(crate) fn with_small_segments(total_bytes: u64) -> Self {
        let mut world = Self::new();
        world.settings.segment_bytes = 128 << 10;
        world.settings.total_bytes = total_bytes;
        world
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("spool")
    }

    pub(crate) fn open(&self) -> Spool {
        open_at(&self.path(), &self.settings)
    }

    /// With a number of clicks, closed again.
    pub(crate) fn written(&self, count: u32) {
        let spool = self.open();
        let mut capture = open_capture(&spool, 0).unwrap();
        for number in 0..count {
            assert!(record(&mut capture, number));
        }
    }

    pub(crate) fn dead_letters(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path().join("dead-letters")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn segments(&self) -> Vec<PathBuf> {
        segments_in(&self.path().join("0"))
    }
}

pub(crate) fn folder_in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

pub(crate) fn open_at(path: &Path, settings: &SpoolSettings) -> Spool {
    Spool::open(path, settings, NOW, &SpoolMetrics::default()).unwrap()
}

pub(crate) fn segments_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "seg"));
    paths.sort();
    paths
}

pub(crate) fn click(number: u32) -> ClickRecord<'static> {
    ClickRecord {
        at: NOW,
        domain: DomainId::DEFAULT,
        key: b"abcdefg",
        generation: number,
        outcome: Outcome::Redirected,
        method: Method::Get,
        prefetch: false,
        address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        agent: b"Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0",
        referrer: b"https://news.example.com/today",
        language: b"de-CH,de;q=0.9,en;q=0.5",
        utm: UtmText::default(),
        attribution: Attribution::default(),
    }
}

/// The capture that writes to a partition.
pub(crate) fn open_capture(spool: &Spool, partition: u32) -> PortResult<Capture> {
    spool.take_writer(partition).map(Capture::new)
}

pub(crate) fn record(capture: &mut Capture, number: u32) -> bool {
    capture.record(&click(number))
}

/// Waits for the next segment, as no worker would: the test wants every number.
pub(crate) fn record_surely(capture: &mut Capture, number: u32) {
    while !record(capture, number) {
        std::thread::yield_now();
    }
}

pub(crate) fn number_of(record: &StreamRecord) -> u32 {
    let read = decode(&record.bytes).unwrap();
    assert_eq!(read, click(read.generation));
    read.generation
}

/// Everything in the partition from `from` on.
pub(crate) async fn drain(spool: &Spool, partition: u32, from: u64) -> Vec<StreamRecord> {
    let mut all: Vec<StreamRecord> = Vec::new();
    loop {
        let from = all.last().map_or(from, |last| last.offset + 1);
        let page = spool
            .poll(partition, from, 1_000, Duration::ZERO)
            .await
            .unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

pub(crate) fn numbers(records: &[StreamRecord]) -> Vec<u32> {
    assert!(records.is_sorted_by(|a, b| a.offset < b.offset));
    records.iter().map(number_of).collect()
}
