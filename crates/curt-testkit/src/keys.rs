//! Key supplies without engines, for tests of what takes keys from them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use curt_core::{Alphabet, KeyOrigin, UnwantedWords};
use curt_keys::{KeyRequest, KeySettings, KeySource, KeySupply, Minter, SuppliedKey};

/// A supply of random keys.
#[must_use]
pub fn random_supply(alphabet: Alphabet, length: usize) -> Arc<KeySupply> {
    let minter = Minter::new(alphabet, length, UnwantedWords::default());
    supply(RandomSource(minter))
}

/// A supply that hands out exactly `keys`, in order, and random ones after that. It lets a test force a conflict.
#[must_use]
pub fn scripted_supply(keys: impl IntoIterator<Item = SuppliedKey>) -> Arc<KeySupply> {
    supply(ScriptedSource(Mutex::new(keys.into_iter().collect())))
}

/// A supply that leaves the keys to [`SeededLinks::claim`](curt_core::ports::SeededLinks::claim) and seeds no rows.
#[must_use]
pub fn claiming_supply() -> Arc<KeySupply> {
    supply(ClaimingSource)
}

fn supply(source: impl KeySource + 'static) -> Arc<KeySupply> {
    KeySupply::over(&KeySettings::default(), Arc::new(source))
}

struct RandomSource(Minter);

impl KeySource for RandomSource {
    fn origin(&self) -> KeyOrigin {
        KeyOrigin::Random
    }

    fn make(&self, _hint: &KeyRequest<'_>) -> Option<SuppliedKey> {
        Some(SuppliedKey {
            key: self.0.mint(),
            origin: KeyOrigin::Random,
        })
    }
}

struct ScriptedSource(Mutex<VecDeque<SuppliedKey>>);

impl KeySource for ScriptedSource {
    fn origin(&self) -> KeyOrigin {
        KeyOrigin::Ledger
    }

    fn make(&self, _hint: &KeyRequest<'_>) -> Option<SuppliedKey> {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        script.pop_front()
    }

    fn put_back(&self, unused: SuppliedKey) {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if unused.origin != KeyOrigin::Random {
            script.push_front(unused);
        }
    }
}

struct ClaimingSource;

impl KeySource for ClaimingSource {
    fn origin(&self) -> KeyOrigin {
        KeyOrigin::Claim
    }

    fn claims_rows(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use curt_core::{Key, OwnerId, Target};

    use super::*;

    async fn take(supply: &KeySupply) -> SuppliedKey {
        let target = Target::from_serialised("https://example.com/").unwrap();
        let (owner, attempt) = (OwnerId(1), 0);
        let hint = KeyRequest {
            target: &target,
            owner,
            attempt,
        };
        supply.take(&hint).await
    }

    #[tokio::test]
    async fn a_script_forces_keys_and_a_random_supply_needs_no_engine() {
        let key = |text: &str| SuppliedKey {
            key: Key::parse(text).unwrap(),
            origin: KeyOrigin::Ledger,
        };
        let scripted = scripted_supply([key("taken"), key("taken"), key("free")]);
        for expected in ["taken", "taken", "free"] {
            assert_eq!(take(&scripted).await.key.as_str(), expected);
        }
        scripted.put_back(key("free"));
        assert_eq!(take(&scripted).await, key("free"));
        assert_eq!(take(&scripted).await.origin, KeyOrigin::Random);
        let random = random_supply(Alphabet::Base36, 10);
        let (one, two) = (take(&random).await, take(&random).await);
        assert_ne!(one.key, two.key);
        assert_eq!(one.key.as_str().len(), 10);
        assert!(!random.claims_rows());
        assert!(claiming_supply().claims_rows());
    }
}
