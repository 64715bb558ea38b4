//! Threads for work that takes long and that others must not wait for.

use std::io;
use std::thread;

/// Nice value of these threads. The scheduler gives them a tenth of the weight of a thread that serves requests: one
/// that wakes up runs at once, and long work still goes on when every core is busy.
const NICE: i32 = 10;

/// Runs `work` on a thread of its own, at a lower priority than what serves requests. A new thread each time, and none
/// of a runtime's: a thread without privileges cannot raise its priority again, and `work` takes far longer than a
/// thread's start.
pub fn spawn_low_priority(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let spawned = thread::Builder::new().name(name.into()).spawn(move || {
        lower_priority(NICE);
        work();
    });
    spawned.map(drop)
}

/// Adds `nice` to the nice value of this thread, for good.
pub fn lower_priority(nice: i32) {
    if nice != 0 {
        // A system that refuses runs the work at the usual priority.
        let _nice = rustix::process::nice(nice);
    }
}

/// Lets another thread run first that is waiting for this core, if one is. For long work between two pieces of it.
///
/// A lower priority alone does not do that: the scheduler lets a thread that has begun run to the end of its slice, which
/// is some milliseconds, before one that woke up meanwhile. On a busy core the thread that yields gets far less than its
/// share, so work that has fallen behind must go on without it.
pub fn yield_core() {
    thread::yield_now();
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn work_has_a_lower_priority_and_its_caller_keeps_its_own() {
        let current = || rustix::process::getpriority_process(None).unwrap();
        let before = current();
        let (told, lowered) = mpsc::channel();
        spawn_low_priority("test", move || told.send(current()).unwrap()).unwrap();
        assert_eq!(lowered.recv().unwrap(), (before + NICE).min(19));
        assert_eq!(current(), before);
    }
}
