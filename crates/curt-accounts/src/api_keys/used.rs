use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use curt_core::UnixMillis;

/// When keys were used, until it is written down. Holds valid keys only, so that strangers cannot make it grow.
#[derive(Default)]
pub(super) struct LastUsed(Mutex<HashMap<Box<str>, UnixMillis>>);

impl LastUsed {
    pub(super) fn note(&self, prefix: &str, now: UnixMillis) {
        let mut noted = self.locked();
        match noted.get_mut(prefix) {
            Some(at) => *at = now.max(*at),
            None => {
                noted.insert(prefix.into(), now);
            }
        }
    }

    pub(super) fn take(&self) -> Vec<(Box<str>, UnixMillis)> {
        self.locked().drain().collect()
    }

    pub(super) fn put_back(&self, used: Vec<(Box<str>, UnixMillis)>) {
        for (prefix, at) in used {
            self.note(&prefix, at);
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Box<str>, UnixMillis>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
