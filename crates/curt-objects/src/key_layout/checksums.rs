//! What a file says of itself: layout, number of keys, and a CRC-32 for each block of keys.
//!
//! All numbers are little-endian: the mark `curtsums`, version (u32), width (u32), keys per block (u64), keys (u64),
//! then one CRC-32 per block, and last the CRC-32 of everything before it.

use std::ops::Range;

use curt_core::Key;
use curt_core::limits::KEY_BYTES_MAX;
use curt_core::ports::{KeyFileLayout, KeyFileStat};

const MARK: &[u8; 8] = b"curtsums";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 8;
const CHECKSUM_BYTES: usize = 4;
/// Most keys in one block: a block is read whole, whatever little of it is wanted.
pub(super) const BLOCK_KEYS_MAX: usize = 1 << 20;

const _: () = assert!(BLOCK_KEYS_MAX * KEY_BYTES_MAX <= 64 << 20);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checksums {
    layout: KeyFileLayout,
    keys: u64,
    blocks: Vec<u32>,
}

pub(super) fn is_possible(layout: KeyFileLayout) -> bool {
    (1..=KEY_BYTES_MAX).contains(&layout.width) && (1..=BLOCK_KEYS_MAX).contains(&layout.block_keys)
}

impl Checksums {
    pub(crate) fn new(layout: KeyFileLayout, keys: u64, blocks: Vec<u32>) -> Self {
        debug_assert!(is_possible(layout));
        debug_assert_eq!(blocks.len() as u64, keys.div_ceil(layout.block_keys as u64));
        Self {
            layout,
            keys,
            blocks,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + CHECKSUM_BYTES * (self.blocks.len() + 1));
        bytes.extend_from_slice(MARK);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        let width = u32::try_from(self.layout.width).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&width.to_le_bytes());
        bytes.extend_from_slice(&self.block_keys().to_le_bytes());
        bytes.extend_from_slice(&self.keys.to_le_bytes());
        for sum in &self.blocks {
            bytes.extend_from_slice(&sum.to_le_bytes());
        }
        let own = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&own.to_le_bytes());
        bytes
    }

    /// Reads it back, or says what is wrong with it.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let (mut body, own) = bytes
            .split_last_chunk::<CHECKSUM_BYTES>()
            .ok_or("its description is too short")?;
        if crc32fast::hash(body) != u32::from_le_bytes(*own) {
            return Err("its description is not what was written");
        }
        let header = read_header(&mut body).ok_or("its description is too short")?;
        let (mark, version, layout, keys) = header;
        if mark != *MARK {
            return Err("its description is of another kind");
        }
        if version != VERSION {
            return Err("its description has a version that this program does not know");
        }
        if !is_possible(layout) || keys.checked_mul(layout.width as u64).is_none() {
            return Err("it describes an impossible layout");
        }
        let expected = keys.div_ceil(layout.block_keys as u64);
        let (checksums, rest) = body.as_chunks::<CHECKSUM_BYTES>();
        if checksums.len() as u64 != expected || !rest.is_empty() {
            return Err("its description does not have one checksum for each block");
        }
        let blocks = checksums
            .iter()
            .map(|sum| u32::from_le_bytes(*sum))
            .collect();
        Ok(Self::new(layout, keys, blocks))
    }

    pub(crate) fn stat(&self) -> KeyFileStat {
        KeyFileStat {
            layout: self.layout,
            keys: self.keys,
        }
    }

    fn block_keys(&self) -> u64 {
        self.layout.block_keys as u64
    }

    /// Length of all keys.
    pub(crate) fn bytes(&self) -> u64 {
        self.keys * self.layout.width as u64
    }

    /// Where a block starts, and how many bytes it has: the last one may be short.
    pub(crate) fn block_place(&self, block: u64) -> (u64, usize) {
        let full = (self.layout.block_keys * self.layout.width) as u64;
        let start = block * full;
        let length = full.min(self.bytes().saturating_sub(start));
        (start, usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// Those of the wanted keys that the file has.
    pub(crate) fn within(&self, first: u64, count: usize) -> Range<u64> {
        let end = self.keys.min(first.saturating_add(count as u64));
        first.min(end)..end
    }

    /// The blocks that hold these keys.
    pub(crate) fn blocks_of(&self, wanted: &Range<u64>) -> Range<u64> {
        if wanted.is_empty() {
            return 0..0;
        }
        wanted.start / self.block_keys()..wanted.end.div_ceil(self.block_keys())
    }

    /// Takes the wanted keys out of a block, after the whole of it was compared with its checksum.
    pub(crate) fn open_block(
        &self,
        block: u64,
        bytes: &[u8],
        wanted: &Range<u64>,
        keys: &mut Vec<Key>,
    ) -> Result<(), String> {
        if self.block_checksum(block) != Some(crc32fast::hash(bytes)) {
            return Err(format!("block {block} is not what was written"));
        }
        let numbers = block * self.block_keys()..;
        let texts = bytes.chunks_exact(self.layout.width);
        for (text, number) in texts.zip(numbers) {
            if !wanted.contains(&number) {
                continue;
            }
            let key = std::str::from_utf8(text).ok();
            let key = key.and_then(|text| Key::parse(text).ok());
            keys.push(key.ok_or("it holds no keys")?);
        }
        Ok(())
    }

    fn block_checksum(&self, block: u64) -> Option<u32> {
        let block = usize::try_from(block).ok()?;
        self.blocks.get(block).copied()
    }
}

fn read_header(body: &mut &[u8]) -> Option<([u8; 8], u32, KeyFileLayout, u64)> {
    let mark = take::<8>(body)?;
    let version = u32::from_le_bytes(take(body)?);
    let width = u32::from_le_bytes(take(body)?);
    let block_keys = u64::from_le_bytes(take(body)?);
    let keys = u64::from_le_bytes(take(body)?);
    let layout = KeyFileLayout {
        width: usize::try_from(width).ok()?,
        block_keys: usize::try_from(block_keys).ok()?,
    };
    Some((mark, version, layout, keys))
}

fn take<const N: usize>(body: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = body.split_first_chunk::<N>()?;
    *body = rest;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: KeyFileLayout = KeyFileLayout {
        width: 7,
        block_keys: 10,
    };

    #[test]
    fn decode_undoes_encode() {
        for keys in [0, 1, 9, 10, 11, 25] {
            let blocks = (0..u32::try_from(keys).unwrap().div_ceil(10)).collect();
            let checksums = Checksums::new(LAYOUT, keys, blocks);
            assert_eq!(Checksums::decode(&checksums.encode()), Ok(checksums));
        }
    }

    #[test]
    fn the_format_never_changes() {
        let bytes = Checksums::new(LAYOUT, 11, vec![0x0403_0201, 0x0807_0605]).encode();
        assert_eq!(&bytes[..8], b"curtsums");
        let numbers = [
            1, 0, 0, 0, 7, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(bytes[8..32], numbers);
        assert_eq!(bytes[32..40], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(bytes.len(), 44);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = Checksums::new(LAYOUT, 11, vec![1, 2]).encode();
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[place] ^= 1 << bit;
                assert!(
                    Checksums::decode(&flipped).is_err(),
                    "bit {bit} of byte {place}"
                );
            }
            assert!(
                Checksums::decode(&bytes[..place]).is_err(),
                "cut at {place}"
            );
        }
    }

    #[test]
    fn a_well_summed_file_of_nonsense_is_refused() {
        let checksums = Checksums::new(LAYOUT, 11, vec![1, 2]);
        let with = |place: usize, byte: u8| {
            let mut bytes = checksums.encode();
            bytes.truncate(bytes.len() - CHECKSUM_BYTES);
            bytes[place] = byte;
            let own = crc32fast::hash(&bytes);
            bytes.extend_from_slice(&own.to_le_bytes());
            Checksums::decode(&bytes)
        };
        assert_eq!(with(0, b'c').as_ref(), Ok(&checksums), "unchanged");
        for (place, byte, what) in [
            (0, b'x', "mark"),
            (8, 2, "version"),
            (12, 0, "no width"),
            (12, 65, "width"),
            (16, 0, "no block"),
            (16, 5, "other blocks"),
            (24, 25, "more keys"),
            (31, 255, "keys beyond counting"),
        ] {
            assert!(with(place, byte).is_err(), "{what}");
        }
    }
}
