//! A key file in one piece, for engines that publish a single file in a single step.
//!
//! First the keys, then what describes them ([`Checksums`]), and in the last eight bytes the length of the description. The
//! file's own length must be the sum of the three: nothing can be cut off, added or inserted unnoticed.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::KeyFileStat;
use curt_core::{ErrorKind, Key, PortResult};

use crate::engine::Published;
use crate::key_layout::{Checksums, Operation, is_name};

pub(crate) const PUBLISHED_SUFFIX: &str = ".keys";
/// Older drafts are a dead writer's. One that lives all the same is told to start anew.
pub(crate) const DRAFT_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Read at once from the end of a file: describes 160 million keys in blocks of 10,000.
pub(crate) const TAIL_BYTES: usize = 64 << 10;
/// Read at once from the keys, unless a single block is larger.
const RUN_BYTES: u64 = 4 << 20;
const LENGTH_BYTES: usize = 8;

/// A published file, as its engine reads it.
#[async_trait]
pub(crate) trait Source: Send + Sync {
    /// Length of the whole file.
    fn length(&self) -> u64;

    /// The bytes from `start` on. The place is always inside of the file.
    async fn part(&self, start: u64, length: usize) -> PortResult<Vec<u8>>;
}

/// The name of the key file that an object or a path is of.
pub(crate) fn published_name(path: &str) -> Option<Box<str>> {
    let name = path.rsplit('/').next()?.strip_suffix(PUBLISHED_SUFFIX)?;
    is_name(name).then(|| name.into())
}

/// What goes behind the keys.
pub(crate) fn seal(checksums: &Checksums) -> Vec<u8> {
    let mut bytes = checksums.encode();
    let length = bytes.len() as u64;
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes
}

/// A published file whose description has been read and checked.
pub(crate) struct Sealed<S> {
    source: S,
    name: Box<str>,
    operation: Operation,
    checksums: Checksums,
}

#[async_trait]
impl<S: Source> Published for Sealed<S> {
    fn stat(&self) -> KeyFileStat {
        self.checksums.stat()
    }

    async fn read(self, first: u64, count: usize) -> PortResult<Vec<Key>> {
        self.read_blocks(first, count).await
    }
}

impl<S: Source> Sealed<S> {
    pub(crate) async fn open(source: S, name: Box<str>, operation: Operation) -> PortResult<Self> {
        let corrupt = |why: &str| operation.corrupt(&name, why);
        let total = source.length();
        let tail_length = total.min(TAIL_BYTES as u64);
        let mut tail = part(&source, total - tail_length, tail_length, operation).await?;
        let (body, length) = tail
            .split_last_chunk::<LENGTH_BYTES>()
            .ok_or_else(|| corrupt("it is too short"))?;
        let described = u64::from_le_bytes(*length);
        let start = (total - LENGTH_BYTES as u64)
            .checked_sub(described)
            .ok_or_else(|| corrupt("its end is not what was written"))?;
        let missing = described.saturating_sub(body.len() as u64);
        if missing > 0 {
            let before = part(&source, start, missing, operation).await?;
            tail.splice(0..0, before);
        }
        let end = tail.len() - LENGTH_BYTES;
        let description = usize::try_from(described)
            .ok()
            .and_then(|length| end.checked_sub(length))
            .map(|start| &tail[start..end])
            .ok_or_else(|| corrupt("its end is not what was written"))?;
        let checksums = Checksums::decode(description).map_err(corrupt)?;
        if checksums.bytes() != start {
            return Err(corrupt("it is longer or shorter than it was"));
        }
        Ok(Self {
            source,
            name,
            operation,
            checksums,
        })
    }

    async fn read_blocks(&self, first: u64, count: usize) -> PortResult<Vec<Key>> {
        let wanted = self.checksums.within(first, count);
        let mut keys = Vec::new();
        let mut rest = self.checksums.blocks_of(&wanted);
        while !rest.is_empty() {
            let (_, block_bytes) = self.checksums.block_place(rest.start);
            let most = (RUN_BYTES / block_bytes as u64).max(1);
            let run = rest.start..rest.end.min(rest.start + most);
            rest.start = run.end;
            self.read_run(run, &wanted, &mut keys).await?;
        }
        Ok(keys)
    }

    /// Blocks that lie one after the other, by one question.
    async fn read_run(
        &self,
        run: Range<u64>,
        wanted: &Range<u64>,
        keys: &mut Vec<Key>,
    ) -> PortResult<()> {
        let (start, _) = self.checksums.block_place(run.start);
        let (last, last_length) = self.checksums.block_place(run.end - 1);
        let length = last + last_length as u64 - start;
        let bytes = part(&self.source, start, length, self.operation).await?;
        let mut rest = &bytes[..];
        for block in run {
            let (bytes, after) = rest.split_at(self.checksums.block_place(block).1);
            rest = after;
            self.checksums
                .open_block(block, bytes, wanted, keys)
                .map_err(|why| self.operation.corrupt(&self.name, &why))?;
        }
        Ok(())
    }
}

/// The part, whole: an engine that sends less is broken off, not damaged.
async fn part(
    source: &impl Source,
    start: u64,
    length: u64,
    operation: Operation,
) -> PortResult<Vec<u8>> {
    let cut_short = || operation.error(ErrorKind::Unavailable, "the answer was cut short");
    let length = usize::try_from(length).map_err(|_| cut_short())?;
    let bytes = source.part(start, length).await?;
    if bytes.len() != length {
        return Err(cut_short());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use curt_core::ports::KeyFileLayout;

    use super::*;
    use crate::key_layout::Tally;

    const OPERATION: Operation = Operation {
        backend: "test",
        name: "read",
    };

    struct Bytes(Vec<u8>);

    #[async_trait]
    impl Source for Bytes {
        fn length(&self) -> u64 {
            self.0.len() as u64
        }

        async fn part(&self, start: u64, length: usize) -> PortResult<Vec<u8>> {
            let start = usize::try_from(start).unwrap();
            Ok(self.0[start..start + length].to_vec())
        }
    }

    fn file(count: usize, block_keys: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..count)
            .flat_map(|number| format!("{number:06}").into_bytes())
            .collect();
        let mut tally = Tally::new(KeyFileLayout {
            width: 6,
            block_keys,
        });
        tally.add(&bytes);
        bytes.extend(seal(&tally.checksums()));
        bytes
    }

    async fn read(bytes: Vec<u8>, first: u64, count: usize) -> PortResult<Vec<String>> {
        let file = Sealed::open(Bytes(bytes), "a".into(), OPERATION).await?;
        let keys = file.read(first, count).await?;
        Ok(keys.iter().map(ToString::to_string).collect())
    }

    #[tokio::test]
    async fn a_description_longer_than_one_reading_is_read_whole() {
        const KEYS: usize = 3 * TAIL_BYTES / 4;
        let read = read(file(KEYS, 1), 40_000, 3).await.unwrap();
        assert_eq!(read, ["040000", "040001", "040002"]);
    }

    #[tokio::test]
    async fn more_blocks_than_one_reading_holds_are_read_in_order() {
        const KEYS: usize = 900_000;
        let read = read(file(KEYS, 10_000), 5, usize::MAX).await.unwrap();
        assert_eq!(read.len(), KEYS - 5);
        let is_in_order = read
            .iter()
            .zip(5..)
            .all(|(key, n)| *key == format!("{n:06}"));
        assert!(is_in_order);
    }

    #[tokio::test]
    async fn every_flipped_bit_and_every_cut_is_noticed() {
        let sound = file(25, 10);
        let kind = async |bytes: Vec<u8>| read(bytes, 0, 25).await.map_err(|error| error.kind);
        assert!(kind(sound.clone()).await.is_ok());
        for place in 0..sound.len() {
            for bit in 0..8 {
                let mut bytes = sound.clone();
                bytes[place] ^= 1 << bit;
                let got = kind(bytes).await;
                assert_eq!(got, Err(ErrorKind::Corrupt), "bit {bit} of byte {place}");
            }
            let got = kind(sound[..place].to_vec()).await;
            assert_eq!(got, Err(ErrorKind::Corrupt), "cut at {place}");
            let got = kind(sound[place + 1..].to_vec()).await;
            assert_eq!(
                got,
                Err(ErrorKind::Corrupt),
                "{place} cut from the beginning"
            );
        }
    }

    /// The file with a sound checksum of its description, so that a fuzzed description gets past it.
    fn with_sound_description(bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let mend = |bytes: &mut Vec<u8>| {
            let (body, length) = bytes.split_last_chunk::<LENGTH_BYTES>()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let start = body.len().checked_sub(length)?;
            let own = body.len().checked_sub(4).filter(|own| *own >= start)?;
            let checksum = crc32fast::hash(&body[start..own]);
            bytes[own..own + 4].copy_from_slice(&checksum.to_le_bytes());
            Some(())
        };
        mend(&mut bytes);
        bytes
    }

    #[test]
    fn mutated_files_give_their_own_keys_or_none() {
        let samples = [file(25, 10), file(1, 1), file(0, 3)];
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.build().unwrap();
        let read = |bytes: &[u8]| runtime.block_on(read(bytes.to_vec(), 0, usize::MAX));
        curt_testkit::fuzz::Fuzz::new("key files", samples).run(|bytes| {
            let bytes = with_sound_description(bytes);
            match read(&bytes) {
                Ok(keys) => {
                    let written = keys.concat();
                    assert!(bytes.starts_with(written.as_bytes()), "other keys");
                    true
                }
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
                    false
                }
            }
        });
    }

    #[tokio::test]
    async fn an_answer_that_is_cut_short_is_not_damage() {
        struct Short;
        #[async_trait]
        impl Source for Short {
            fn length(&self) -> u64 {
                100
            }

            async fn part(&self, _: u64, length: usize) -> PortResult<Vec<u8>> {
                Ok(vec![0; length - 1])
            }
        }
        let opened = Sealed::open(Short, "a".into(), OPERATION).await.map(|_| ());
        let kind = opened.map_err(|error| error.kind);
        assert_eq!(kind, Err(ErrorKind::Unavailable));
    }
}
