//! Which processor core a thread runs on.

use std::io;
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores that this process may use, lowest first.
pub fn allowed_cores() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&core| allowed.is_set(core))
        .collect())
}

/// Binds the calling thread to these cores.
fn bind(cores: &[usize]) -> io::Result<()> {
    let mut only = CpuSet::new();
    for &core in cores {
        only.set(core);
    }
    sched_setaffinity(None, &only).map_err(io::Error::from)
}

/// Runs `work` on a thread of its own, bound to `core` if one is given, so that the caller stays unbound.
pub fn on_core<T: Send>(core: Option<usize>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    on_cores(core.as_slice(), work)
}

/// The same for several cores; none: wherever the caller may run.
pub fn on_cores<T: Send>(cores: &[usize], work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            if !cores.is_empty() {
                bind(cores)?;
            }
            Ok(work())
        });
        worker
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the pinned thread panicked")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_inner_thread_is_bound() {
        let before = allowed_cores().unwrap();
        let last = *before.last().unwrap();
        let inside = on_core(Some(last), || allowed_cores().unwrap()).unwrap();
        assert_eq!(inside, [last]);
        assert_eq!(allowed_cores().unwrap(), before);
    }
}
