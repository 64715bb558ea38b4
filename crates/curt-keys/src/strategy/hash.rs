use async_trait::async_trait;
use curt_core::link::KeyOrigin;
use curt_core::{Alphabet, Key, PortResult, UnwantedWords};
use md5::{Digest, Md5};
use sha2::Sha256;

use crate::key_counts::KeyCounts;
use crate::ports::KeyPorts;
use crate::settings::{HashKind, KeySettings};
use crate::source::{KeyRequest, KeySource, SuppliedKey};

/// Tries that are computed from the request; later ones are random. The same owner may shorten the same target any
/// number of times, and each time all the hashes before the next free one are taken.
const HASHED_TRIES_MAX: u32 = 6;

/// Keys computed from target, owner and attempt.
#[derive(Clone, Debug)]
pub(crate) struct HashKeys {
    kind: HashKind,
    alphabet: Alphabet,
    length: usize,
    unwanted: UnwantedWords,
}

impl HashKeys {
    pub(crate) fn new(settings: &KeySettings) -> Self {
        Self {
            kind: settings.hash,
            alphabet: settings.alphabet,
            length: settings.length,
            unwanted: settings.unwanted.clone(),
        }
    }

    /// The key of the hint's attempt; `None` after so many attempts that chance is the better guess.
    pub(crate) fn key(&self, hint: &KeyRequest<'_>) -> Option<Key> {
        if hint.attempt >= HASHED_TRIES_MAX {
            return None;
        }
        let key = self.trim(self.digest(hint))?;
        self.unwanted.allow(key.as_str()).then_some(key)
    }

    fn digest(&self, hint: &KeyRequest<'_>) -> u128 {
        let target = hint.target.as_str().as_bytes();
        let owner = hint.owner.0.to_be_bytes();
        let attempt = hint.attempt.to_be_bytes();
        // A target holds no zero byte, so that the parts cannot run into each other.
        let parts: [&[u8]; 4] = [target, &[0], &owner, &attempt];
        let mut number = [0; 16];
        match self.kind {
            HashKind::Md5 => number.copy_from_slice(&digest_of::<Md5>(&parts)[..16]),
            HashKind::Sha256 => number.copy_from_slice(&digest_of::<Sha256>(&parts)[..16]),
        }
        u128::from_be_bytes(number)
    }

    fn trim(&self, number: u128) -> Option<Key> {
        let number = match self.alphabet.space(self.length) {
            Some(space) => number % space,
            None => number,
        };
        self.alphabet.encode(number, self.length)
    }
}

fn digest_of<D: Digest>(parts: &[&[u8]]) -> Vec<u8> {
    let mut digest = D::new();
    for part in parts {
        digest.update(part);
    }
    digest.finalize().to_vec()
}

/// `hash`: keys computed from the request; nothing is made ahead.
pub(crate) struct HashSource {
    pub(crate) keys: HashKeys,
    pub(crate) ports: KeyPorts,
}

#[async_trait]
impl KeySource for HashSource {
    fn origin(&self) -> KeyOrigin {
        KeyOrigin::Hash
    }

    fn make(&self, hint: &KeyRequest<'_>) -> Option<SuppliedKey> {
        let origin = self.origin();
        self.keys.key(hint).map(|key| SuppliedKey { key, origin })
    }

    async fn count_keys(&self, _buffered: u64) -> PortResult<KeyCounts> {
        let counts = self.ports.links()?.totals.counts().await?;
        let used = counts.created_from(KeyOrigin::Hash);
        Ok(KeyCounts {
            minted: used,
            used,
            ..KeyCounts::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use curt_core::{OwnerId, Target};

    use super::*;

    fn hash_keys(kind: HashKind, alphabet: Alphabet, length: usize) -> HashKeys {
        HashKeys::new(&KeySettings {
            hash: kind,
            alphabet,
            length,
            ..KeySettings::default()
        })
    }

    fn key(keys: &HashKeys, target: &str, owner: u64, attempt: u32) -> Option<String> {
        let target = Target::from_serialised(target).unwrap();
        let hint = KeyRequest {
            target: &target,
            owner: OwnerId(owner),
            attempt,
        };
        keys.key(&hint).map(|key| key.to_string())
    }

    #[test]
    fn golden_hash_keys_never_change() {
        let md5 = hash_keys(HashKind::Md5, Alphabet::Base62, 8);
        let sha = hash_keys(HashKind::Sha256, Alphabet::Base64Url, 7);
        let target = "https://example.com/";
        assert_eq!(key(&md5, target, 1, 0).as_deref(), Some(GOLDEN_MD5));
        assert_eq!(key(&sha, target, 1, 0).as_deref(), Some(GOLDEN_SHA));
    }

    const GOLDEN_MD5: &str = "Yu9yT0aq";
    const GOLDEN_SHA: &str = "uQazuNc";

    #[test]
    fn owner_attempt_and_target_all_matter() {
        for kind in [HashKind::Md5, HashKind::Sha256] {
            for length in [6, 7, 8, 10, 22] {
                let keys = hash_keys(kind, Alphabet::Base62, length);
                let seen: HashSet<_> = [("a", 1, 0), ("a", 2, 0), ("a", 1, 1), ("b", 1, 0)]
                    .map(|(target, owner, attempt)| key(&keys, target, owner, attempt).unwrap())
                    .into();
                assert_eq!(seen.len(), 4);
                assert!(seen.iter().all(|key| key.len() == length));
                assert_eq!(key(&keys, "a", 1, 0), key(&keys, "a", 1, 0));
            }
        }
    }

    #[test]
    fn after_some_conflicts_chance_takes_over() {
        let keys = hash_keys(HashKind::Md5, Alphabet::Base62, 7);
        assert!(key(&keys, "a", 1, HASHED_TRIES_MAX - 1).is_some());
        assert_eq!(key(&keys, "a", 1, HASHED_TRIES_MAX), None);
    }
}
