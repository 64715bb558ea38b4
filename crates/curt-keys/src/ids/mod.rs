//! 48-bit ids, written so that neighbours do not look alike.
//!
//! Both generators hand out numbers only from a range that a [`Cursor`] was moved past
//! before: a crash skips what is left of the range and never repeats a number.

mod sequence;
mod snowflake;

use sequence::{SEQUENCE_REGISTER, Sequence};
use snowflake::Snowflake;

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::link::KeyOrigin;
use curt_core::permute::Permutation;
use curt_core::ports::Cursor;
use curt_core::{Alphabet, ErrorKind, Key, PortError, PortResult, UnwantedWords};

use crate::key_counts::KeyCounts;
use crate::ports::KeyPorts;
use crate::seed::PermutationSeed;
use crate::settings::{BufferSettings, ID_BITS, KeySettings};
use crate::source::KeySource;

/// Compare-and-set attempts before a draw is given up until the next one.
const CLAIM_TRIES_MAX: u32 = 16;

/// `snowflake` and `sequence`: nothing is made ahead but the buffer.
pub(crate) struct IdSource {
    ports: KeyPorts,
    generator: Generator,
    buffer: BufferSettings,
}

enum Generator {
    Snowflake(Snowflake),
    Sequence(Sequence),
}

impl IdSource {
    pub(crate) fn snowflake(settings: &KeySettings, ports: KeyPorts) -> Self {
        let (cursor, clock) = (Arc::clone(&ports.cursor), Arc::clone(&ports.clock));
        let codec = IdCodec::of(settings, &ports);
        let generator = Snowflake::new(cursor, clock, codec, settings.snowflake);
        Self::new(settings, ports, Generator::Snowflake(generator))
    }

    pub(crate) fn sequence(settings: &KeySettings, ports: KeyPorts) -> Self {
        let generator = Sequence {
            cursor: Arc::clone(&ports.cursor),
            codec: IdCodec::of(settings, &ports),
            block: settings.sequence_block,
        };
        Self::new(settings, ports, Generator::Sequence(generator))
    }

    fn new(settings: &KeySettings, ports: KeyPorts, generator: Generator) -> Self {
        Self {
            ports,
            generator,
            buffer: settings.buffer,
        }
    }
}

#[async_trait]
impl KeySource for IdSource {
    fn origin(&self) -> KeyOrigin {
        KeyOrigin::Id
    }

    fn buffer(&self) -> Option<BufferSettings> {
        Some(self.buffer)
    }

    async fn draw(&self, room: usize) -> PortResult<Vec<Key>> {
        match &self.generator {
            Generator::Snowflake(snowflake) => snowflake.draw(room).await,
            Generator::Sequence(sequence) => sequence.draw(room).await,
        }
    }

    /// A sequence knows how many numbers it has given away. A snowflake leaves most of its numbers unused by design,
    /// so that only the keys in sight are counted.
    async fn count_keys(&self, buffered: u64) -> PortResult<KeyCounts> {
        let links = self.ports.links()?.totals.counts().await?;
        let used = links.created_from(KeyOrigin::Id);
        let minted = match self.generator {
            Generator::Snowflake(_) => used + buffered,
            Generator::Sequence(_) => self.ports.cursor.get(SEQUENCE_REGISTER).await?,
        };
        let counts = KeyCounts {
            minted,
            buffered,
            used,
            ..KeyCounts::default()
        };
        Ok(counts.with_difference())
    }
}

/// Turns ids into keys: permuted by a seed, then written in as many symbols as 48 bits need.
pub(crate) struct IdCodec {
    alphabet: Alphabet,
    unwanted: UnwantedWords,
    seed: PermutationSeed,
}

impl IdCodec {
    pub(crate) fn new(
        alphabet: Alphabet,
        unwanted: UnwantedWords,
        cursor: Arc<dyn Cursor>,
    ) -> Self {
        Self {
            alphabet,
            unwanted,
            seed: PermutationSeed::new(cursor, "ids/permutation-seed".to_owned()),
        }
    }

    fn of(settings: &KeySettings, ports: &KeyPorts) -> Self {
        let cursor = Arc::clone(&ports.cursor);
        Self::new(settings.alphabet, settings.unwanted.clone(), cursor)
    }

    /// The keys of `ids`, without those that spell a reserved word or hold an unwanted one.
    async fn keys(&self, ids: impl Iterator<Item = u64>) -> PortResult<Vec<Key>> {
        let seed = self.seed.get().await?;
        let permutation = Permutation::new(seed, 1 << ID_BITS)
            .ok_or_else(|| failed(ErrorKind::Bug, "48 bits are too many to permute"))?;
        let width = self.alphabet.width_for_bits(ID_BITS);
        ids.map(|id| {
            self.alphabet
                .encode(u128::from(permutation.apply(id)), width)
                .ok_or_else(|| failed(ErrorKind::Bug, "an id does not fit its width"))
        })
        .filter(|key| {
            key.as_ref()
                .map_or(true, |key| self.unwanted.allow(key.as_str()))
        })
        .collect()
    }
}

fn failed(kind: ErrorKind, detail: &str) -> PortError {
    PortError::new(kind, "id generator", "make ids", detail)
}

fn contended() -> PortError {
    failed(
        ErrorKind::Throttled,
        "other generators moved the cursor each time",
    )
}
