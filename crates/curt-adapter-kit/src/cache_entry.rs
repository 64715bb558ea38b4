//! Entries of shared link caches as bytes, the same in every engine.
//!
//! ```text
//! epoch     16 hexadecimal digits
//! rank      21 decimal digits: unknown outcome (1), generation (10), version (10)
//! kind      1 letter: link, absent, marker
//! content   of a link: its served form; of an absence: the time, 16 hexadecimal digits
//! ```
//! An entry counts only in the epoch in which it was written: a cache is cleared by giving it another one. Ranks are digits
//! of fixed width, so that texts compare as numbers do, in a script's language, too.

use curt_core::ports::CachedLink;
use curt_core::{Revision, ServedLink, UnixMillis};

const EPOCH_LEN: usize = 16;
const RANK_LEN: usize = 21;
const HEADER_LEN: usize = EPOCH_LEN + RANK_LEN + 1;

const LINK: u8 = b'l';
const ABSENT: u8 = b'a';
const MARKER: u8 = b'm';

/// Which entries of a cache count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheEpoch(pub u64);

impl CacheEpoch {
    #[must_use]
    pub fn to_text(self) -> String {
        format!("{:016x}", self.0)
    }

    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok()?;
        u64::from_str_radix(text, 16).ok().map(Self)
    }
}

/// What lies under a key, but for its epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheEntry {
    Link(CachedLink),
    /// Left by an invalidation; `None` by one with an unknown outcome.
    Marker(Option<Revision>),
}

impl CacheEntry {
    /// What wins over what, as digits of fixed width: an unknown outcome over every revision.
    #[must_use]
    pub fn rank(&self) -> String {
        let (is_unknown, revision) = match self {
            Self::Link(link) => (0, link.revision()),
            Self::Marker(Some(revision)) => (0, *revision),
            Self::Marker(None) => (1, Revision::default()),
        };
        let (generation, version) = (revision.generation, revision.version);
        format!("{is_unknown}{generation:010}{version:010}")
    }

    /// Returns what stands behind the epoch: rank, kind and content.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.rank().into_bytes();
        match self {
            Self::Link(CachedLink::Present(link)) => {
                bytes.push(LINK);
                bytes.extend(link.as_bytes());
            }
            Self::Link(CachedLink::Absent(at)) => {
                bytes.push(ABSENT);
                bytes.extend(format!("{:016x}", at.0.cast_unsigned()).bytes());
            }
            Self::Marker(_) => bytes.push(MARKER),
        }
        bytes
    }

    /// The link that the bytes hold, if they count in this epoch. Whatever cannot be read is no entry.
    #[must_use]
    pub fn decode_link(bytes: &[u8], epoch: CacheEpoch) -> Option<CachedLink> {
        let (header, content) = bytes.split_at_checked(HEADER_LEN)?;
        if CacheEpoch::parse(&header[..EPOCH_LEN]) != Some(epoch) {
            return None;
        }
        match header[HEADER_LEN - 1] {
            LINK => ServedLink::from_bytes(content)
                .ok()
                .map(CachedLink::Present),
            ABSENT => {
                let millis = CacheEpoch::parse(content)?.0.cast_signed();
                Some(CachedLink::Absent(UnixMillis(millis)))
            }
            _ => None,
        }
    }

    /// Whether what lies there counts in this epoch and wins over this entry.
    #[must_use]
    pub fn is_beaten_by(&self, bytes: &[u8], epoch: CacheEpoch) -> bool {
        let Some((header, _)) = bytes.split_at_checked(HEADER_LEN) else {
            return false;
        };
        let (there, rank) = header[..HEADER_LEN - 1].split_at(EPOCH_LEN);
        CacheEpoch::parse(there) == Some(epoch) && rank > self.rank().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: CacheEpoch = CacheEpoch(0xf00d);

    fn marker(generation: u32, version: u32) -> CacheEntry {
        CacheEntry::Marker(Some(Revision {
            generation,
            version,
        }))
    }

    fn stored(entry: &CacheEntry, epoch: CacheEpoch) -> Vec<u8> {
        [epoch.to_text().into_bytes(), entry.encode()].concat()
    }

    #[test]
    fn ranks_compare_as_revisions_do() {
        let rising = [
            CacheEntry::Link(CachedLink::Absent(UnixMillis(5))),
            marker(1, 9),
            marker(1, 10),
            marker(2, 1),
            marker(u32::MAX, u32::MAX),
            CacheEntry::Marker(None),
        ];
        for pair in rising.windows(2) {
            let [lower, higher] = [&pair[0], &pair[1]];
            assert!(
                lower.is_beaten_by(&stored(higher, EPOCH), EPOCH),
                "{pair:?}"
            );
            assert!(
                !higher.is_beaten_by(&stored(lower, EPOCH), EPOCH),
                "{pair:?}"
            );
            assert!(
                !lower.is_beaten_by(&stored(lower, EPOCH), EPOCH),
                "{pair:?}"
            );
        }
    }

    #[test]
    fn nothing_counts_in_another_epoch() {
        let absent = CachedLink::Absent(UnixMillis(-7));
        let bytes = stored(&CacheEntry::Link(absent.clone()), EPOCH);
        assert_eq!(CacheEntry::decode_link(&bytes, EPOCH), Some(absent));
        let other = CacheEpoch(0xf00e);
        assert_eq!(CacheEntry::decode_link(&bytes, other), None);
        assert!(!marker(0, 0).is_beaten_by(&stored(&marker(9, 9), EPOCH), other));
        for end in 0..HEADER_LEN {
            assert_eq!(CacheEntry::decode_link(&bytes[..end], EPOCH), None);
        }
    }
}
