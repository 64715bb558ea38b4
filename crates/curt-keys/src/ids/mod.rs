//! 48-bit ids, written so that neighbours do not look alike.
//!
//! Both generators hand out numbers only from a range that a [`Cursor`] was moved past
//! before: a crash skips what is left of the range and never repeats a number.

mod sequence;
mod snowflake;

pub(crate) use sequence::{SEQUENCE_REGISTER, Sequence};
pub(crate) use snowflake::Snowflake;

use std::sync::Arc;

use curt_core::permute::Permutation;
use curt_core::ports::Cursor;
use curt_core::{Alphabet, ErrorKind, Key, PortError, PortResult, UnwantedWords};

use crate::secret::Secret;
use crate::settings::ID_BITS;

/// Compare-and-set attempts before a draw is given up until the next one.
const CLAIM_TRIES_MAX: u32 = 16;

/// Turns ids into keys: permuted by a secret, then written in as many symbols as 48 bits need.
pub(crate) struct IdCodec {
    alphabet: Alphabet,
    unwanted: UnwantedWords,
    secret: Secret,
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
            secret: Secret::new(cursor, "ids/secret".to_owned()),
        }
    }

    /// The keys of `ids`, without those that spell a reserved word or hold an unwanted one.
    async fn keys(&self, ids: impl Iterator<Item = u64>) -> PortResult<Vec<Key>> {
        let secret = self.secret.get().await?;
        let permutation = Permutation::new(secret, 1 << ID_BITS)
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
