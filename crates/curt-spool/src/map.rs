//! A segment's file in memory, for its one writer.
//!
//! # Why `unsafe`
//! A click must be safe from kill -9 without a system call: only a store into a mapped page of the file gives that, and
//! the compiler knows nothing about such memory. This module says `unsafe` for the two stores that it makes.
//!
//! What makes them sound:
//! - The stores stay inside the mapping ([`MappedWriter::write`] checks) and are aligned as they must be.
//! - No Rust reference to the mapped memory is ever made, and nothing in this process reads it: readers ask the
//!   kernel for the file's bytes. A [`MappedWriter`] is not `Clone`, and writing needs `&mut`: there is one at a time.
//! - Another process is kept out by the spool's lock file, and would be no danger to memory if it wrote to the file all
//!   the same: its bytes are only ever read through the kernel, and every one of them is checked.
//! - The file's blocks are allocated before it is mapped, so that a full disk fails there and not as SIGBUS here. What
//!   is left is a process that *shortens* the file while it is mapped: the next store beyond its end is a SIGBUS, which
//!   ends this process as a kill would. Nothing that was written before is lost by it. The same happens if the disk
//!   below a copy-on-write file system, which allocates again at each write, is full.
//!
//! The order of the two stores is what a crash at any instant relies on: the payload first, then the word that makes it
//! count, with release ordering. The page cache sees them in that order, and it outlives the process.

#![expect(unsafe_code, reason = "see the module's documentation")]

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

const WORD_BYTES: usize = size_of::<AtomicU64>();

/// A mapped file: can be made durable by anybody, and written by its [`MappedWriter`] alone.
#[derive(Debug)]
pub(super) struct Map {
    raw: MmapRaw,
}

/// The right to write to a map.
#[derive(Debug)]
pub(super) struct MappedWriter {
    map: Arc<Map>,
}

impl Map {
    /// Maps the first `bytes` of a file whose blocks are allocated.
    pub(super) fn of(file: &File, bytes: usize) -> io::Result<(Arc<Self>, MappedWriter)> {
        let raw = MmapOptions::new().len(bytes).map_raw(file)?;
        let map = Arc::new(Self { raw });
        map.touch_pages();
        let mapped = MappedWriter {
            map: Arc::clone(&map),
        };
        Ok((map, mapped))
    }

    /// Lets the kernel find a page for every part of the file now, so that the writer does not wait for that later.
    /// Kernels that cannot (before Linux 5.14) do it page by page under the writer.
    #[cfg(target_os = "linux")]
    fn touch_pages(&self) {
        if let Err(error) = self.raw.advise(memmap2::Advice::PopulateWrite) {
            tracing::debug!(%error, "spool pages not prepared ahead");
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn touch_pages(&self) {}

    /// Makes what was written to the range durable: it survives a power cut when this returns.
    pub(super) fn flush(&self, from: usize, to: usize) -> io::Result<()> {
        let to = to.min(self.raw.len());
        match to.checked_sub(from) {
            None | Some(0) => Ok(()),
            Some(bytes) => self.raw.flush_range(from, bytes),
        }
    }
}

impl MappedWriter {
    /// Writes the payload after `at`, and then the word at `at` that makes it count.
    ///
    /// # Panics
    /// If that is not inside the map or `at` is not aligned to a word: a bug of the caller.
    pub(super) fn write(&mut self, at: usize, word: u64, payload: &[u8]) {
        let room = self.map.raw.len().checked_sub(at);
        let fits = room.is_some_and(|room| room >= WORD_BYTES + payload.len());
        assert!(fits && at.is_multiple_of(WORD_BYTES), "outside the map");
        let start = self.map.raw.as_mut_ptr();
        // SAFETY: `at + WORD_BYTES + payload.len()` bytes are inside the mapping, which lives as long as `self.map`; the
        // payload is borrowed memory of ours and cannot overlap it; nobody else writes (`&mut self`) or holds a
        // reference into it.
        unsafe {
            let body = start.add(at + WORD_BYTES);
            body.copy_from_nonoverlapping(payload.as_ptr(), payload.len());
        }
        // SAFETY: in bounds as above; a mapping starts at a page and `at` is a multiple of the word, so it is aligned; the
        // word is only ever accessed here.
        let published = unsafe { AtomicU64::from_ptr(start.add(at).cast()) };
        published.store(word.to_le(), Ordering::Release);
    }
}

/// Miri can run these, though it knows no mapped files: the memory is anonymous.
#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const PAYLOAD: [u8; 11] = *b"one payload";
    const FRAME_BYTES: usize = 24;
    const FRAMES: usize = 20;

    fn anonymous(bytes: usize) -> (Arc<Map>, MappedWriter) {
        let memory = MmapOptions::new().len(bytes).map_anon().unwrap();
        let map = Arc::new(Map { raw: memory.into() });
        let writer = MappedWriter {
            map: Arc::clone(&map),
        };
        (map, writer)
    }

    /// The word, and the payload that it makes count.
    fn read(map: &Map, at: usize) -> (u64, Option<[u8; PAYLOAD.len()]>) {
        let start = map.raw.as_mut_ptr();
        // SAFETY: in bounds and aligned, as every frame of these tests.
        let word = unsafe { AtomicU64::from_ptr(start.add(at).cast()) }.load(Ordering::Acquire);
        // SAFETY: a word that is not zero was stored after its payload, which is not written again.
        let payload = || unsafe { start.add(at + WORD_BYTES).cast::<[u8; 11]>().read() };
        (u64::from_le(word), (word != 0).then(payload))
    }

    #[test]
    fn a_word_that_is_seen_has_its_payload() {
        let (map, mut writer) = anonymous(FRAMES * FRAME_BYTES);
        let writing = thread::spawn(move || {
            for frame in 0..FRAMES {
                writer.write(frame * FRAME_BYTES, frame as u64 + 1, &PAYLOAD);
            }
        });
        for frame in 0..FRAMES {
            let (word, payload) = loop {
                match read(&map, frame * FRAME_BYTES) {
                    (word, Some(payload)) => break (word, payload),
                    (_, None) => thread::yield_now(),
                }
            };
            assert_eq!((word, payload), (frame as u64 + 1, PAYLOAD));
        }
        writing.join().unwrap();
    }

    #[test]
    fn nothing_is_written_outside_the_map() {
        let bytes = WORD_BYTES + PAYLOAD.len();
        for at in [1, WORD_BYTES, bytes, usize::MAX, usize::MAX - 7] {
            let (map, mut writer) = anonymous(bytes);
            let write = move || writer.write(at, 1, &PAYLOAD);
            assert!(thread::spawn(write).join().is_err(), "{at}");
            assert_eq!(read(&map, 0), (0, None));
        }
        let (map, mut writer) = anonymous(bytes);
        writer.write(0, 7, &PAYLOAD);
        assert_eq!(read(&map, 0), (7, Some(PAYLOAD)));
    }
}
