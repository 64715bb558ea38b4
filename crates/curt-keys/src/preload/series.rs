use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use curt_core::permute::Permutation;
use curt_core::ports::{Cursor, KeyFile};
use curt_core::{Alphabet, ErrorKind, Key, PortError, PortResult};

use crate::seed::PermutationSeed;
use crate::settings::KeySettings;

/// The largest bound that a permutation takes.
const INDEX_BOUND_MAX: u64 = 1 << 62;

/// All key files of one alphabet and length, as one long row of keys.
///
/// The key at an index is the permuted index, so that keys are distinct by construction and neighbours in a file tell
/// nothing about each other. A file's name ends with the index of its first key; files of the same series lie end to
/// end. Every writer of the file of an index writes the same keys, so that two do no harm.
pub(crate) struct Series {
    files: Arc<dyn KeyFile>,
    cursor: Arc<dyn Cursor>,
    alphabet: Alphabet,
    length: usize,
    prefix: String,
    position: String,
    seed: PermutationSeed,
    known: Mutex<Vec<Span>>,
}

/// The part of a series that one file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) name: Box<str>,
    pub(crate) first: u64,
    pub(crate) keys: u64,
}

impl Span {
    pub(crate) fn end(&self) -> u64 {
        self.first + self.keys
    }
}

impl Series {
    pub(crate) fn new(
        files: Arc<dyn KeyFile>,
        cursor: &Arc<dyn Cursor>,
        settings: &KeySettings,
    ) -> Self {
        let (alphabet, length) = (settings.alphabet, settings.length);
        let name = format!("{alphabet}-{length}");
        let seed = format!("key-files/{name}/permutation-seed");
        Self {
            files,
            cursor: Arc::clone(cursor),
            alphabet,
            length,
            prefix: format!("keys-{name}-"),
            position: format!("key-files/{name}/position"),
            seed: PermutationSeed::new(Arc::clone(cursor), seed),
            known: Mutex::default(),
        }
    }

    /// Reads the index of the next key that was not given away.
    pub(crate) async fn position(&self) -> PortResult<u64> {
        self.cursor.get(&self.position).await
    }

    /// Claims the keys from `position` up to `end`, durably. Returns whether it still was the position.
    pub(crate) async fn claim(&self, position: u64, end: u64) -> PortResult<bool> {
        self.cursor.advance(&self.position, position, end).await
    }

    pub(crate) fn width(&self) -> usize {
        self.length
    }

    pub(crate) fn file_name(&self, first: u64) -> String {
        format!("{}{first:020}", self.prefix)
    }

    /// One past the last index that a known file holds.
    pub(crate) fn end(&self) -> u64 {
        self.known().last().map_or(0, Span::end)
    }

    /// Keys in all known files.
    pub(crate) fn keys(&self) -> u64 {
        self.known().iter().map(|span| span.keys).sum()
    }

    /// The file that holds `index`. Looks for new files when no known one does.
    pub(crate) async fn at(&self, index: u64) -> PortResult<Option<Span>> {
        if let Some(span) = self.find(index) {
            return Ok(Some(span));
        }
        self.refresh().await?;
        Ok(self.find(index))
    }

    fn find(&self, index: u64) -> Option<Span> {
        let known = self.known();
        known
            .iter()
            .find(|span| (span.first..span.end()).contains(&index))
            .cloned()
    }

    /// Reads which files there are.
    pub(crate) async fn refresh(&self) -> PortResult<()> {
        let mut spans = Vec::new();
        for name in self.files.names().await? {
            let first = name.strip_prefix(&self.prefix).and_then(|n| n.parse().ok());
            let Some(first) = first else { continue };
            let old = self.known().iter().find(|span| span.name == name).cloned();
            if let Some(old) = old {
                spans.push(old);
            } else if let Some(stat) = self.files.stat(&name).await? {
                let keys = stat.keys;
                spans.push(Span { name, first, keys });
            }
        }
        spans.sort_unstable_by_key(|span| span.first);
        *self.known() = spans;
        Ok(())
    }

    /// The keys from index `first` on; fewer at the end of the key space.
    pub(crate) async fn keys_at(&self, first: u64, count: u64) -> PortResult<Vec<Key>> {
        let space = self.alphabet.space(self.length).unwrap_or(u128::MAX);
        let bound = u64::try_from(space)
            .unwrap_or(u64::MAX)
            .min(INDEX_BOUND_MAX);
        let broken = |detail| PortError::new(ErrorKind::Bug, "key file", "write keys", detail);
        let permutation = Permutation::new(self.seed.get().await?, bound)
            .ok_or_else(|| broken("the key space cannot be permuted"))?;
        (first..first.saturating_add(count).min(bound))
            .map(|index| {
                self.alphabet
                    .encode(u128::from(permutation.apply(index)), self.length)
                    .ok_or_else(|| broken("an index does not fit the key length"))
            })
            .collect()
    }

    fn known(&self) -> MutexGuard<'_, Vec<Span>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
