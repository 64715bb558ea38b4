//! One file of the spool: a header, then frames of records and of texts that they refer to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::frame_reader::{FrameReader, ScannedItem};
use super::settings::PAGE_BYTES;

pub(super) const HEADER_LEN: usize = 64;
pub(super) const HEADER_BYTES: u64 = HEADER_LEN as u64;
/// No segment is larger.
pub(super) const SEGMENT_BYTES_MAX: u64 = 1 << 30;

const MAGIC: [u8; 8] = *b"curtclks";
const VERSION: u32 = 2;
const SUMMED_BYTES: usize = 40;

static ZEROS: [u8; 64 * 1_024] = [0; 64 * 1_024];

const SUFFIX: &str = ".seg";
const DRAFT_SUFFIX: &str = ".new";

/// Where a segment's bytes are in the partition's endless range of addresses, and the file that holds them.
#[derive(Debug)]
pub(super) struct Segment {
    /// Address of the file's first byte, and the file's name.
    pub(super) first: u64,
    /// Addresses from `first` to here belong to this segment, used or not.
    pub(super) limit: u64,
    pub(super) salt: u64,
    file: File,
    path: PathBuf,
    /// Address after the last record; 0 while there may be more to come.
    end: AtomicU64,
    /// Everything before this address has been wiped.
    wiped: AtomicU64,
}

/// What opening a file of an earlier run found.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) segment: Segment,
    pub(super) records: u64,
    /// What stood after the last record and is cut off: a record that was never finished.
    pub(super) torn: Vec<u8>,
}

impl Segment {
    /// Makes the file with all its blocks, durably: after a crash it is there whole or not at all.
    pub(super) fn create(
        folder: &Path,
        partition: u32,
        first: u64,
        bytes: u64,
    ) -> io::Result<Self> {
        let path = folder.join(format!("{first:020}{SUFFIX}"));
        let draft = path.with_extension(&DRAFT_SUFFIX[1..]);
        let salt = rand::random();
        let made = allocated(&draft, bytes).and_then(|file| {
            file.write_all_at(&header(partition, first, bytes, salt), 0)?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            File::open(folder)?.sync_all()?;
            Ok(file)
        });
        let file = made.inspect_err(|_| remove_quietly(&draft))?;
        Ok(Self {
            first,
            limit: first + bytes,
            salt,
            file,
            path,
            end: AtomicU64::new(0),
            wiped: AtomicU64::new(first + HEADER_BYTES),
        })
    }

    /// Opens a file of an earlier run, finds its last record, and cuts off what was prepared after it. `None`: the header
    /// is damaged, and without its salt no record can be told from garbage.
    pub(super) fn recover(
        path: &Path,
        partition: u32,
        first: u64,
    ) -> io::Result<Option<Recovered>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let length = file.metadata()?.len();
        let mut bytes = [0; HEADER_LEN];
        if length < HEADER_BYTES {
            return Ok(None);
        }
        file.read_exact_at(&mut bytes, 0)?;
        let Some((capacity, salt)) = read_header(&bytes, partition, first) else {
            return Ok(None);
        };
        let segment = Self {
            first,
            limit: first + capacity,
            salt,
            file,
            path: path.to_owned(),
            end: AtomicU64::new(first + length),
            wiped: AtomicU64::new(first + HEADER_BYTES),
        };
        segment.cut_after_last_record().map(Some)
    }

    fn cut_after_last_record(self) -> io::Result<Recovered> {
        let (mut records, mut end) = (0, self.data_start());
        let mut torn = Vec::new();
        let mut reader = FrameReader::new(&self, self.data_start(), self.end());
        while let Some(seen) = reader.next()? {
            match seen {
                ScannedItem::Record { next, .. } => {
                    records += 1;
                    end = next;
                    torn.clear();
                }
                // Cut off if no record follows: it was written for one that was never finished.
                ScannedItem::Text { .. } => {}
                ScannedItem::Damaged { bytes, .. } => torn.extend_from_slice(bytes),
            }
        }
        let written = torn.iter().rposition(|byte| *byte != 0);
        torn.truncate(written.map_or(0, |last| last + 1));
        self.end.store(end, Ordering::Release);
        self.file.set_len(end - self.first)?;
        Ok(Recovered {
            segment: self,
            records,
            torn,
        })
    }

    pub(super) fn data_start(&self) -> u64 {
        self.first + HEADER_BYTES
    }

    /// Address of the first record that has not been wiped.
    pub(super) fn kept_start(&self) -> u64 {
        self.wiped.load(Ordering::Relaxed)
    }

    /// Address after the last record; 0 while the segment is being written.
    pub(super) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// The writer has gone on to another segment.
    pub(super) fn close(&self, end: u64) {
        self.end.store(end, Ordering::Release);
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Bytes on the disk.
    pub(super) fn bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Reads what is there from `address` on, up to the buffer's length; says how much that was.
    pub(super) fn read(&self, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = address - self.first + filled as u64;
            match self.file.read_at(&mut buffer[filled..], at) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Overwrites the records that end at or before `offset`, of those before `end`: they are counted, and say who came
    /// from where. Whoever reads the file again finds zeros, and the next record after them. Texts that came more than once
    /// stay for the records that refer to them.
    pub(super) fn wipe(&self, offset: u64, end: u64) -> io::Result<()> {
        let from = self.kept_start();
        if offset <= from {
            return Ok(());
        }
        let (mut wiped, mut to) = (from, from);
        let mut reader = FrameReader::new(self, from, end);
        while let Some(seen) = reader.next()? {
            let next = seen.next();
            if next > offset {
                break;
            }
            if let ScannedItem::Text { .. } = seen {
                self.write_zeros(wiped, to)?;
                wiped = next;
            }
            to = next;
        }
        self.write_zeros(wiped, to)?;
        self.wiped.store(to, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the bytes zero. Whole pages are given back to the file system, which writes nothing for that.
    fn write_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        let (from, to) = (from - self.first, to - self.first);
        let whole = from.next_multiple_of(PAGE_BYTES)..to / PAGE_BYTES * PAGE_BYTES;
        if whole.is_empty() || !self.punch_hole(&whole)? {
            return self.overwrite(from..to);
        }
        self.overwrite(from..whole.start)?;
        self.overwrite(whole.end..to)
    }

    /// Says whether the file system can do it.
    fn punch_hole(&self, range: &Range<u64>) -> io::Result<bool> {
        use rustix::fs::{FallocateFlags, fallocate};
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, flags, range.start, range.end - range.start) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn overwrite(&self, range: Range<u64>) -> io::Result<()> {
        for at in range.clone().step_by(ZEROS.len()) {
            let bytes = to_usize((range.end - at).min(ZEROS.len() as u64));
            self.file.write_all_at(&ZEROS[..bytes], at)?;
        }
        Ok(())
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// The first address of the segment with this file name.
pub(super) fn first_by_name(name: &str) -> Option<u64> {
    name.strip_suffix(SUFFIX)?.parse().ok()
}

/// Whether a crash left this file before it was a segment.
pub(super) fn is_draft(name: &str) -> bool {
    name.ends_with(DRAFT_SUFFIX)
}

/// A new file with blocks for `bytes`, all zero. A disk without room for them fails here.
fn allocated(path: &Path, bytes: u64) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    let flags = rustix::fs::FallocateFlags::empty();
    match rustix::fs::fallocate(&file, flags, 0, bytes) {
        Ok(()) => {}
        // Some file systems cannot promise blocks: writing them has the same effect, slower.
        Err(rustix::io::Errno::OPNOTSUPP) => {
            io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(file)
}

fn remove_quietly(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::debug!(%error, path = %path.display(), "unfinished spool segment not removed");
    }
}

/// A length or a place within a segment, which is mapped whole.
pub(super) fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn header(partition: u32, first: u64, bytes: u64, salt: u64) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&partition.to_le_bytes());
    header[16..24].copy_from_slice(&first.to_le_bytes());
    header[24..32].copy_from_slice(&bytes.to_le_bytes());
    header[32..40].copy_from_slice(&salt.to_le_bytes());
    let sum = crc32fast::hash(&header[..SUMMED_BYTES]);
    header[SUMMED_BYTES..SUMMED_BYTES + 4].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Capacity and salt, if this is the header of that segment.
fn read_header(found: &[u8; HEADER_LEN], partition: u32, first: u64) -> Option<(u64, u64)> {
    let number = |at: usize| Some(u64::from_le_bytes(*found[at..].first_chunk()?));
    let (capacity, salt) = (number(24)?, number(32)?);
    let sane = (HEADER_BYTES..=SEGMENT_BYTES_MAX).contains(&capacity);
    (sane && *found == header(partition, first, capacity, salt)).then_some((capacity, salt))
}
