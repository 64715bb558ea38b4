//! One writer's part of the spool: a row of segments, the newest of which is being written.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use curt_core::UnixMillis;
use curt_core::names::event;

use super::budget::Budget;
use super::contents::{self, Content};
use super::dead_letter_log::DeadLetterLog;
use super::map::Map;
use super::poll::ReadPosition;
use super::segment::{self, Recovered, SEGMENT_BYTES_MAX, Segment, to_usize};
use super::writer::{DropReason, OpenSegment, WriterState};

/// A new partition's addresses start at the time of its birth, as if a mebibyte had been written in every millisecond
/// since 1970: should the folder be lost, the positions that consumers remember are not used again.
const BIRTH_SHIFT: u32 = 20;

#[derive(Debug)]
pub(super) struct Partition {
    pub(super) number: u32,
    folder: PathBuf,
    pub(super) writer_state: Arc<WriterState>,
    ready: SyncSender<OpenSegment>,
    state: Mutex<State>,
    /// Held by whoever polls.
    pub(super) position: Mutex<ReadPosition>,
    /// Held by whoever makes a segment: of two, one would take the other's address.
    making: Mutex<()>,
}

#[derive(Debug)]
pub(super) struct State {
    /// Oldest first. The newest is never removed: it is what tells the next run where addresses go on.
    segments: VecDeque<StoredSegment>,
    /// First address of the next segment.
    next_first: u64,
    /// Segments that this run made.
    made: u32,
    /// Damage before this address has been reported.
    pub(super) reported: u64,
}

#[derive(Debug)]
struct StoredSegment {
    segment: Arc<Segment>,
    /// Until it is closed and durable.
    map: Option<Arc<Map>>,
    /// What is durable, as an address.
    synced: u64,
}

/// What an earlier run left in a partition.
#[derive(Debug, Default)]
struct Found {
    segments: VecDeque<StoredSegment>,
    records: u64,
    next_first: u64,
}

impl Partition {
    /// Opens or makes the partition, with every record of earlier runs. The receiver is its writer's.
    pub(super) fn open(
        spool: &Path,
        number: u32,
        now: UnixMillis,
        budget: &Budget,
        dead_letters: &DeadLetterLog,
    ) -> io::Result<(Self, Receiver<OpenSegment>)> {
        let folder = spool.join(number.to_string());
        fs::create_dir_all(&folder)?;
        fs::File::open(spool)?.sync_all()?;
        let found = recover(&folder, number, dead_letters)?;
        for stored in &found.segments {
            budget.add(stored.segment.bytes());
        }
        if found.records > 0 {
            tracing::info!(
                event = event::SPOOL_RECOVERED,
                partition = number,
                records = found.records,
                "spool holds clicks of earlier run"
            );
        }
        let birth = u64::try_from(now.0).unwrap_or(0) << BIRTH_SHIFT;
        let next_first = match found.next_first {
            0 => birth,
            next => next,
        };
        let (ready, next_segments) = sync_channel(1);
        let state = State {
            segments: found.segments,
            next_first,
            made: 0,
            reported: 0,
        };
        let partition = Self {
            number,
            folder,
            writer_state: Arc::new(WriterState::new()),
            ready,
            state: Mutex::new(state),
            position: Mutex::default(),
            making: Mutex::default(),
        };
        Ok((partition, next_segments))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares the writer's next segment if it wants one and there is room for it.
    /// The segments, as one moment saw them.
    pub(super) fn contents(&self) -> Vec<Content> {
        // The tail first: whoever sees it in a later segment also sees where the earlier ones end.
        let tail = self.writer_state.tail();
        let state = self.state();
        contents::of(state.segments.iter().map(|stored| &stored.segment), tail)
    }

    pub(super) fn prepare_segments(&self, budget: &Budget) {
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.writer_state.wants_segment() {
            return;
        }
        let bytes = budget.segment_bytes(self.state().made);
        if !budget.reserve(bytes) {
            self.note_drop_reason(DropReason::Full, "the consumer is behind");
            return;
        }
        match self.add_segment_if_disk_has(budget, bytes) {
            Ok(segment) => self.hand_over(segment),
            Err(error) => {
                budget.release(bytes);
                self.note_drop_reason(DropReason::Disk, &error.to_string());
            }
        }
    }

    fn hand_over(&self, segment: OpenSegment) {
        if self.writer_state.note(DropReason::Late) {
            let partition = self.number;
            tracing::info!(
                event = event::SPOOL_FULL_ENDED,
                partition,
                "spool no longer full"
            );
        }
        self.writer_state.expect_segment();
        if self.ready.try_send(segment).is_err() {
            tracing::debug!(partition = self.number, "spool writer gone");
        }
    }

    fn note_drop_reason(&self, drop_reason: DropReason, why: &str) {
        if self.writer_state.note(drop_reason) {
            tracing::warn!(
                event = event::SPOOL_FULL,
                partition = self.number,
                reason = drop_reason.name(),
                why,
                "spool full, dropping clicks"
            );
        }
    }

    fn add_segment_if_disk_has(&self, budget: &Budget, bytes: u64) -> io::Result<OpenSegment> {
        if !budget.disk_has(&self.folder, bytes)? {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.add_segment(bytes)
    }

    fn add_segment(&self, bytes: u64) -> io::Result<OpenSegment> {
        let first = self.state().next_first;
        let segment = Segment::create(&self.folder, self.number, first, bytes)?;
        let (map, mapped) =
            Map::of(segment.file(), to_usize(bytes)).inspect_err(|_| drop(segment.remove()))?;
        let segment = Arc::new(segment);
        let mut state = self.state();
        state.next_first = segment.limit;
        state.made += 1;
        state.segments.push_back(StoredSegment {
            segment: Arc::clone(&segment),
            map: Some(map),
            synced: first,
        });
        Ok(OpenSegment::new(segment, mapped))
    }

    /// Makes everything durable that is written so far.
    pub(super) fn sync(&self) -> io::Result<()> {
        let tail = self.writer_state.tail();
        let open: Vec<(Arc<Segment>, Arc<Map>, u64)> = self
            .state()
            .segments
            .iter()
            .filter_map(|stored| {
                let map = Arc::clone(stored.map.as_ref()?);
                Some((Arc::clone(&stored.segment), map, stored.synced))
            })
            .collect();
        for (segment, map, synced) in open {
            let end = contents::end_of(&segment, tail);
            if end > synced.max(segment.data_start()) {
                let at = |address: u64| to_usize(address - segment.first);
                map.flush(at(synced), at(end))?;
            }
            self.note_synced(segment.first, end);
        }
        Ok(())
    }

    fn note_synced(&self, first: u64, end: u64) {
        let mut state = self.state();
        let stored = state
            .segments
            .iter_mut()
            .find(|stored| stored.segment.first == first);
        let Some(stored) = stored else { return };
        stored.synced = stored.synced.max(end);
        if stored.segment.end() != 0 && stored.synced >= stored.segment.end() {
            stored.map = None;
        }
    }

    /// Removes the segments that end at or before `offset`, and wipes what is before it in the one that stays.
    pub(super) fn commit(&self, offset: u64, budget: &Budget) -> io::Result<()> {
        while let Some(oldest) = self.take_done(offset) {
            let bytes = oldest.bytes();
            oldest.remove()?;
            budget.release(bytes);
        }
        let tail = self.writer_state.tail();
        let oldest = self
            .state()
            .segments
            .front()
            .map(|stored| Arc::clone(&stored.segment));
        oldest.map_or(Ok(()), |segment| {
            segment.wipe(offset, contents::end_of(&segment, tail))
        })
    }

    fn take_done(&self, offset: u64) -> Option<Arc<Segment>> {
        let mut state = self.state();
        if state.segments.len() < 2 || !is_done(state.segments.front()?, offset) {
            return None;
        }
        Some(state.segments.pop_front()?.segment)
    }
}

fn is_done(stored: &StoredSegment, offset: u64) -> bool {
    let end = stored.segment.end();
    end != 0 && end <= offset
}

fn recover(folder: &Path, partition: u32, dead_letters: &DeadLetterLog) -> io::Result<Found> {
    let mut found = Found::default();
    for (first, path) in segment_files(folder)? {
        let Some(recovered) = Segment::recover(&path, partition, first)? else {
            found.next_first = first.saturating_add(SEGMENT_BYTES_MAX);
            set_aside(&path, partition, first, dead_letters)?;
            continue;
        };
        let Recovered {
            segment,
            records,
            torn,
        } = recovered;
        if !torn.is_empty() {
            dead_letters.report(partition, segment.end(), "torn", &torn);
        }
        found.records += records;
        found.next_first = segment.limit;
        // The newest stays, though empty, until there is a newer one.
        while let Some(empty) = found.segments.pop_back_if(|stored| is_empty(stored)) {
            empty.segment.remove()?;
        }
        found.segments.push_back(StoredSegment {
            synced: segment.end(),
            segment: Arc::new(segment),
            map: None,
        });
    }
    Ok(found)
}

fn is_empty(stored: &StoredSegment) -> bool {
    stored.segment.end() == stored.segment.data_start()
}

/// The partition's segments, oldest first. Unfinished ones are removed.
fn segment_files(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if segment::is_draft(name) {
            fs::remove_file(entry.path())?;
        } else if let Some(first) = segment::first_by_name(name) {
            files.push((first, entry.path()));
        }
    }
    files.sort();
    Ok(files)
}

/// A file whose header is damaged is set aside under another name, with its records only where they may be kept. Its
/// name still tells which addresses it took.
fn set_aside(
    path: &Path,
    partition: u32,
    first: u64,
    dead_letters: &DeadLetterLog,
) -> io::Result<()> {
    let mut start = [0; segment::HEADER_LEN];
    let mut file = fs::File::options().read(true).write(true).open(path)?;
    let read = io::Read::read(&mut file, &mut start)?;
    dead_letters.report(partition, first, "segment", &start[..read]);
    if !dead_letters.keeps_records() {
        file.set_len(read as u64)?;
    }
    fs::rename(path, path.with_extension("bad"))
}
