use curt_core::ports::KeyFileLayout;

use super::Checksums;

/// The checksums of a file that is being written.
pub(crate) struct Tally {
    layout: KeyFileLayout,
    keys: u64,
    blocks: Vec<u32>,
    /// The block that is not full yet.
    block: crc32fast::Hasher,
    block_keys: usize,
}

impl Tally {
    pub(crate) fn new(layout: KeyFileLayout) -> Self {
        Self {
            layout,
            keys: 0,
            blocks: Vec::new(),
            block: crc32fast::Hasher::new(),
            block_keys: 0,
        }
    }

    /// Counts whole keys that stand one after the other.
    pub(crate) fn add(&mut self, mut keys: &[u8]) {
        debug_assert_eq!(keys.len() % self.layout.width, 0);
        while !keys.is_empty() {
            let room = (self.layout.block_keys - self.block_keys) * self.layout.width;
            let (part, rest) = keys.split_at(room.min(keys.len()));
            let added = part.len() / self.layout.width;
            self.block.update(part);
            self.block_keys += added;
            self.keys += added as u64;
            if self.block_keys == self.layout.block_keys {
                self.close_block();
            }
            keys = rest;
        }
    }

    fn close_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        self.blocks.push(block.finalize());
        self.block_keys = 0;
    }

    /// What describes the keys so far.
    pub(crate) fn checksums(&self) -> Checksums {
        let mut blocks = self.blocks.clone();
        if self.block_keys > 0 {
            blocks.push(self.block.clone().finalize());
        }
        Checksums::new(self.layout, self.keys, blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksums_are_the_same_however_the_keys_come() {
        let keys: Vec<u8> = (0..37u8).flat_map(|n| [b'k', n]).collect();
        let layout = KeyFileLayout {
            width: 2,
            block_keys: 10,
        };
        let checksums = |portion: usize| {
            let mut tally = Tally::new(layout);
            for part in keys.chunks(portion * 2) {
                tally.add(part);
            }
            tally.checksums()
        };
        let blocks: Vec<u32> = keys.chunks(20).map(crc32fast::hash).collect();
        for portion in [1, 3, 9, 10, 11, 37] {
            assert_eq!(
                checksums(portion),
                Checksums::new(layout, 37, blocks.clone())
            );
        }
        assert_eq!(
            Tally::new(layout).checksums(),
            Checksums::new(layout, 0, Vec::new())
        );
    }
}
