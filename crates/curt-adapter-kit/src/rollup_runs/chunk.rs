//! A chunk: neighbours in a run, compressed together.
//!
//! ```text
//! version · CRC-32 of the rest · bytes before compression · LZ4 block of: for each entry, rising: key · counts · visitors
//! ```
//! Each of the three is a length and as many bytes. Lengths are varints, the checksum has its lowest byte first. Entries
//! repeat each other's texts, which is what the compression takes out.

use std::ops::Range;

use lz4_flex::block;

use super::{NewChunk, NewRun};
use crate::click_days::DayBytes;
use crate::varint::{Damaged, push, take, take_counted};
use curt_core::{Day, yield_core};

const VERSION: u8 = 1;
/// Of the version and the checksum.
const HEAD_BYTES: usize = 1 + size_of::<u32>();
/// Bytes before compression at which a chunk ends. To find one subject a whole chunk is read.
const CHUNK_BYTES: usize = 32 * 1_024;
/// More than one subject's day can take, and little enough to be allocated for a damaged length.
const CHUNK_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// Writes entries in the order of their keys.
pub(super) struct RunWriter {
    run: NewRun,
    /// Bytes before compression at which a chunk ends.
    chunk_bytes: usize,
    first_key: Vec<u8>,
    entries: Vec<u8>,
}

impl RunWriter {
    pub(super) fn new(day: Day) -> Self {
        let run = NewRun {
            day,
            subjects: 0,
            chunks: Vec::new(),
        };
        Self {
            run,
            chunk_bytes: CHUNK_BYTES,
            first_key: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// For entries that are of one chunk already.
    pub(super) fn in_one_chunk(day: Day) -> Self {
        Self {
            chunk_bytes: usize::MAX,
            ..Self::new(day)
        }
    }

    pub(super) fn push(&mut self, key: &[u8], day: DayBytes<'_>) {
        if self.entries.is_empty() {
            self.first_key = key.to_vec();
        }
        for part in [key, day.counts, day.visitors] {
            push(&mut self.entries, part.len() as u64);
            self.entries.extend_from_slice(part);
        }
        self.run.subjects = self.run.subjects.saturating_add(1);
        if self.entries.len() >= self.chunk_bytes {
            self.end_chunk();
        }
    }

    fn end_chunk(&mut self) {
        let mut packed = Vec::new();
        push(&mut packed, self.entries.len() as u64);
        packed.extend_from_slice(&block::compress(&self.entries));
        let checksum = crc32fast::hash(&packed).to_le_bytes();
        let content = [&[VERSION], &checksum[..], &packed].concat();
        self.run.chunks.push(NewChunk {
            first_key: std::mem::take(&mut self.first_key),
            content,
        });
        self.entries.clear();
        // Runs are written and merged beside requests, and a chunk takes about a tenth of a millisecond.
        yield_core();
    }

    pub(super) fn finish(mut self) -> NewRun {
        if !self.entries.is_empty() {
            self.end_chunk();
        }
        self.run
    }
}

/// The entries of a chunk, before compression.
fn decompress(content: &[u8]) -> Result<Vec<u8>, Damaged> {
    let (&head, mut rest) = content.split_first_chunk::<HEAD_BYTES>().ok_or(Damaged)?;
    let [version, checksum @ ..] = head;
    if version != VERSION || u32::from_le_bytes(checksum) != crc32fast::hash(rest) {
        return Err(Damaged);
    }
    let bytes = usize::try_from(take(&mut rest)?).map_err(|_| Damaged)?;
    if bytes > CHUNK_BYTES_MAX {
        return Err(Damaged);
    }
    let entries = block::decompress(rest, bytes).map_err(|_| Damaged)?;
    match entries.len() == bytes {
        true => Ok(entries),
        false => Err(Damaged),
    }
}

/// Goes through the entries of chunks that follow each other.
pub(super) struct EntryReader<'a> {
    chunks: std::slice::Iter<'a, Vec<u8>>,
    open: Vec<u8>,
    /// Of the open chunk.
    read: usize,
    entry: Option<EntryRanges>,
}

/// Where the parts of an entry lie in the open chunk.
struct EntryRanges {
    key: Range<usize>,
    counts: Range<usize>,
    visitors: Range<usize>,
}

impl<'a> EntryReader<'a> {
    /// Starts before the first entry.
    pub(super) fn new(chunks: &'a [Vec<u8>]) -> Self {
        Self {
            chunks: chunks.iter(),
            open: Vec::new(),
            read: 0,
            entry: None,
        }
    }

    /// Goes to the next entry, or past the last one. Keys rise, or a chunk is damaged.
    pub(super) fn advance(&mut self) -> Result<(), Damaged> {
        let before = self.key().map(<[u8]>::to_vec);
        self.entry = None;
        while self.read == self.open.len() {
            let Some(chunk) = self.chunks.next() else {
                return Ok(());
            };
            self.open = decompress(chunk)?;
            self.read = 0;
        }
        let entry = EntryRanges {
            key: self.take_part()?,
            counts: self.take_part()?,
            visitors: self.take_part()?,
        };
        if before.is_some_and(|before| before[..] >= self.open[entry.key.clone()]) {
            return Err(Damaged);
        }
        self.entry = Some(entry);
        Ok(())
    }

    fn take_part(&mut self) -> Result<Range<usize>, Damaged> {
        let mut rest = &self.open[self.read..];
        let part = take_counted(&mut rest)?.len();
        let end = self.open.len() - rest.len();
        self.read = end;
        Ok(end - part..end)
    }

    /// The entry's; `None` before the first and past the last one.
    pub(super) fn key(&self) -> Option<&[u8]> {
        let entry = self.entry.as_ref()?;
        Some(&self.open[entry.key.clone()])
    }

    pub(super) fn day(&self) -> Option<DayBytes<'_>> {
        let entry = self.entry.as_ref()?;
        Some(DayBytes {
            counts: &self.open[entry.counts.clone()],
            visitors: &self.open[entry.visitors.clone()],
        })
    }
}

/// The key of the first subject of a chunk, by which the chunk is found.
pub fn first_key_of(content: &Vec<u8>) -> Result<Vec<u8>, Damaged> {
    let mut entries = EntryReader::new(std::slice::from_ref(content));
    entries.advance()?;
    entries.key().map(<[u8]>::to_vec).ok_or(Damaged)
}
