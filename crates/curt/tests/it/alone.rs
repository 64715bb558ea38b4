//! Times that other tests would spoil: in `make soak` a test that measures waits until nobody else has a site, and nobody
//! gets one until it is done. `make test` judges no times, so that nobody has to wait.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::length::is_full;

static PRESENT: Mutex<Present> = Mutex::new(Present {
    sites: 0,
    alone: None,
});
static CHANGED: Condvar = Condvar::new();

struct Present {
    /// Of tests that do not mind company.
    sites: usize,
    /// The test that measures.
    alone: Option<ThreadId>,
}

/// No other test has a site while this lives.
pub(crate) struct Alone(());

/// Waits for the others' sites to end, where times are judged. The caller must not have one yet.
pub(crate) fn alone() -> Option<Alone> {
    if !is_full() {
        return None;
    }
    let mut present = wait_while(|present| present.sites > 0 || present.alone.is_some());
    present.alone = Some(thread::current().id());
    Some(Alone(()))
}

impl Drop for Alone {
    fn drop(&mut self) {
        present().alone = None;
        CHANGED.notify_all();
    }
}

/// That there is a site.
pub(crate) struct Company {
    counted: bool,
}

impl Company {
    /// Waits for a test that measures, unless it is the caller.
    pub(crate) fn join() -> Self {
        let me = thread::current().id();
        let mut present =
            wait_while(|present| present.alone.is_some_and(|measuring| measuring != me));
        let counted = present.alone.is_none();
        present.sites += usize::from(counted);
        Self { counted }
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        present().sites -= usize::from(self.counted);
        CHANGED.notify_all();
    }
}

/// A test that failed has left the numbers right all the same.
fn present() -> MutexGuard<'static, Present> {
    PRESENT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_while(condition: impl Fn(&Present) -> bool) -> MutexGuard<'static, Present> {
    CHANGED
        .wait_while(present(), |present| condition(present))
        .unwrap_or_else(PoisonError::into_inner)
}
