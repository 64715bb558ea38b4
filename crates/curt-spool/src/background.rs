//! What happens beside the writers: making segments ahead of them, and making what they wrote durable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use super::Core;

/// How often segments are prepared without a wake-up: a full disk may have been emptied.
const PREPARE_EVERY: Duration = Duration::from_millis(200);

/// Wakes the thread that prepares segments.
#[derive(Debug, Default)]
pub(super) struct ThreadWaker(OnceLock<Thread>);

impl ThreadWaker {
    pub(super) fn wake(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

/// The two threads. They are apart because a disk may take long to make something durable, and a writer that needs its
/// next segment must not wait for that.
#[derive(Debug)]
pub(super) struct BackgroundThreads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BackgroundThreads {
    pub(super) fn start(core: &Arc<Core>, sync_every: Duration) -> std::io::Result<Self> {
        let mut background = Self {
            stop: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
        };
        background.spawn(
            "spool-segments",
            core,
            PREPARE_EVERY,
            Core::prepare_segments,
        )?;
        if let Some(thread) = background.threads.first() {
            core.segment_waker.0.get_or_init(|| thread.thread().clone());
        }
        background.spawn("spool-sync", core, sync_every, Core::sync)?;
        Ok(background)
    }

    fn spawn(
        &mut self,
        name: &str,
        core: &Arc<Core>,
        every: Duration,
        work: fn(&Core),
    ) -> std::io::Result<()> {
        let (core, stop) = (Arc::clone(core), Arc::clone(&self.stop));
        let run = move || {
            while !stop.load(Ordering::Acquire) {
                work(&core);
                thread::park_timeout(every);
            }
        };
        self.threads
            .push(thread::Builder::new().name(name.to_owned()).spawn(run)?);
        Ok(())
    }
}

impl Drop for BackgroundThreads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("spool thread panicked");
            }
        }
    }
}
