//! Whether a block may have clicks of a subject, told from a few kilobytes beside it: a Bloom filter.

use crate::click::{ClickOutcome, ClickSubject};
use crate::placement;

use super::block::{LINK, outcome_bytes, owner_bytes};

/// Bits per subject, and how many of them each sets: one of a hundred subjects is believed to be there without being so.
const BITS: usize = 10;
const PROBES: u64 = 5;

/// What a subject is found by. `None`: every block may have clicks of it.
#[must_use]
pub fn hash_of(subject: &ClickSubject) -> Option<u64> {
    Some(match subject {
        ClickSubject::Everything => return None,
        ClickSubject::Orphans => placement::hash(b"u"),
        ClickSubject::Owner(owner) => hash_owner(&owner_bytes(Some(*owner))),
        ClickSubject::Tag(owner, tag) => hash_tag(&owner_bytes(Some(*owner)), tag.as_bytes()),
        ClickSubject::Link(id, generation) => {
            placement::hash(&outcome_bytes(&ClickOutcome::Link(id.clone(), *generation)))
        }
    })
}

/// Of a stored outcome: that of its link, or of the orphans.
pub(super) fn hash_outcome(stored: &[u8]) -> u64 {
    match stored.first() {
        Some(&LINK) => placement::hash(stored),
        _ => placement::hash(b"u"),
    }
}

pub(super) fn hash_owner(stored: &[u8]) -> u64 {
    placement::hash(&[b"o", stored].concat())
}

/// Tags are compared without ASCII case.
pub(super) fn hash_tag(owner: &[u8], tag: &[u8]) -> u64 {
    placement::hash(&[b"t", owner, &tag.to_ascii_lowercase()].concat())
}

/// A filter of subjects, by their hashes, which name each subject once.
pub(super) fn filter_of(hashes: &[u64]) -> Vec<u8> {
    let mut filter = vec![0; (hashes.len() * BITS).div_ceil(8).max(1)];
    for hash in hashes {
        for bit in bits_of(*hash, filter.len()) {
            filter[bit / 8] |= 1 << (bit % 8);
        }
    }
    filter
}

#[must_use]
pub fn may_have(filter: &[u8], hash: u64) -> bool {
    !filter.is_empty()
        && bits_of(hash, filter.len()).all(|bit| filter[bit / 8] >> (bit % 8) & 1 == 1)
}

fn bits_of(hash: u64, bytes: usize) -> impl Iterator<Item = usize> {
    // Two hashes make as many as are needed (Kirsch and Mitzenmacher).
    let step = hash.rotate_left(32) | 1;
    let bits = bytes as u64 * 8;
    (0..PROBES).map(move |probe| {
        let bit = hash.wrapping_add(probe.wrapping_mul(step)) % bits;
        usize::try_from(bit).unwrap_or(0)
    })
}
