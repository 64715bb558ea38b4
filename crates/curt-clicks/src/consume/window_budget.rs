//! What the windows of a process may hold together: memory, and clicks that the stream keeps until they are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes, of one window or of all.
#[derive(Debug, Default)]
struct Totals {
    memory: AtomicU64,
    read: AtomicU64,
}

/// The budget of all windows.
#[derive(Debug)]
pub(super) struct WindowBudget {
    memory_max: u64,
    read_max: u64,
    windows: AtomicU64,
    totals: Totals,
}

/// What one window has of the budget.
#[derive(Debug)]
pub(super) struct WindowShare {
    budget: Arc<WindowBudget>,
    memory: u64,
    read: u64,
}

impl WindowBudget {
    pub(super) fn new(memory_max: u64, read_max: u64, windows: usize) -> Arc<Self> {
        Arc::new(Self {
            memory_max,
            read_max,
            windows: AtomicU64::new(windows as u64),
            totals: Totals::default(),
        })
    }

    /// Notes that there are so many windows now.
    pub(super) fn share_among(&self, windows: usize) {
        self.windows.store(windows as u64, Ordering::Relaxed);
    }

    pub(super) fn share(self: &Arc<Self>) -> WindowShare {
        WindowShare {
            budget: Arc::clone(self),
            memory: 0,
            read: 0,
        }
    }
}

impl WindowShare {
    /// Notes that records were read for which the stream keeps so many bytes.
    pub(super) fn add_read(&mut self, bytes: u32) {
        let read = self.read.saturating_add(bytes.into());
        replace(&self.budget.totals.read, &mut self.read, read);
    }

    /// Notes the memory that the window holds.
    pub(super) fn hold(&mut self, bytes: usize) {
        replace(&self.budget.totals.memory, &mut self.memory, bytes as u64);
    }

    /// Notes that the window is written.
    pub(super) fn release(&mut self) {
        replace(&self.budget.totals.memory, &mut self.memory, 0);
        replace(&self.budget.totals.read, &mut self.read, 0);
    }

    /// Whether the windows hold too much and this one is among the large ones: a worker that has few clicks does not write
    /// small windows because another has many.
    pub(super) fn is_exceeded(&self) -> bool {
        let WindowBudget {
            memory_max,
            read_max,
            ref windows,
            ref totals,
        } = *self.budget;
        let windows = windows.load(Ordering::Relaxed);
        let is_large = |own: u64, all: &AtomicU64, max: u64| {
            let all = all.load(Ordering::Relaxed);
            all >= max && own.saturating_mul(windows) >= all
        };
        is_large(self.memory, &totals.memory, memory_max)
            || is_large(self.read, &totals.read, read_max)
    }
}

/// Puts `new` in the place of a window's part of the total.
fn replace(total: &AtomicU64, own: &mut u64, new: u64) {
    // Numbers that nothing else hangs on.
    total.fetch_add(new.wrapping_sub(*own), Ordering::Relaxed);
    *own = new;
}

impl Drop for WindowShare {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_large_windows_end_when_all_together_hold_too_much() {
        let budget = WindowBudget::new(1_000, 500, 3);
        let (mut busy, mut other, idle) = (budget.share(), budget.share(), budget.share());
        busy.hold(800);
        other.hold(100);
        assert!(!busy.is_exceeded());
        other.hold(200);
        assert!(busy.is_exceeded());
        assert!(!other.is_exceeded() && !idle.is_exceeded());
        busy.release();
        assert!(!busy.is_exceeded());
        other.add_read(250);
        other.add_read(250);
        assert!(other.is_exceeded());
        drop(other);
        busy.hold(999);
        assert!(!busy.is_exceeded(), "what a window had is free again");
    }
}
