use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;

/// One instance for all tests of a process, started when the first one asks. It is never dropped, as no static is: its
/// watchdog ends it.
#[derive(Debug)]
pub(super) struct Shared<T>(Mutex<Option<Arc<T>>>);

impl<T> Shared<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn get(&self, start: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(instance) = &*held {
            return Ok(Arc::clone(instance));
        }
        let instance = Arc::new(start()?);
        *held = Some(Arc::clone(&instance));
        Ok(instance)
    }
}
