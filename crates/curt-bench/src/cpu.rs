//! What a process has spent: processor time to the nanosecond, memory, and bytes sent to disks.
//!
//! `/proc/PID/stat` counts in ticks of 10 ms. The scheduler's own counters in `/proc/PID/task/*/schedstat` are exact,
//! and stay comparable when other programs run on the machine, which requests per second do not.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How the names of the server's redirect workers begin.
const WORKERS: &str = "curt-redirect";

/// Processor time of every thread of a process, by thread id.
#[derive(Clone, Debug, Default)]
pub struct CpuReading(BTreeMap<u32, Thread>);

#[derive(Clone, Copy, Debug)]
struct Thread {
    nanos: u64,
    is_worker: bool,
}

/// Processor time between two readings, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuSpent {
    pub all: u64,
    /// By the redirect workers among the threads: what a redirect itself costs, without what is done about it later.
    pub workers: u64,
}

impl CpuReading {
    /// Reads `pid` and, with `children`, every process below it (nginx serves from a child of the one started).
    ///
    /// A thread that ends while it is read is left out; a process that is not there is an error.
    pub fn take(pid: u32, children: bool) -> io::Result<Self> {
        let mut reading = Self::default();
        let mut open = vec![pid];
        while let Some(pid) = open.pop() {
            let threads = fs::read_dir(format!("/proc/{pid}/task"))?;
            for thread in threads.flatten() {
                let Some(id) = thread.file_name().to_str().and_then(|id| id.parse().ok()) else {
                    continue;
                };
                if let Some(thread) = read_thread(pid, id) {
                    reading.0.insert(id, thread);
                }
                if children {
                    open.extend(children_of(pid, id));
                }
            }
        }
        Ok(reading)
    }

    /// What was spent since `earlier`. Threads born in between count whole; what a thread spent that ended in
    /// between is lost, so servers are measured in a steady state.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> CpuSpent {
        let mut spent = CpuSpent::default();
        for (id, thread) in &self.0 {
            let before = earlier.0.get(id).map_or(0, |thread| thread.nanos);
            let nanos = thread.nanos.saturating_sub(before);
            spent.all += nanos;
            spent.workers += if thread.is_worker { nanos } else { 0 };
        }
        spent
    }
}

fn read_thread(pid: u32, thread: u32) -> Option<Thread> {
    let read = |name| fs::read_to_string(format!("/proc/{pid}/task/{thread}/{name}")).ok();
    let nanos = read("schedstat")?;
    Some(Thread {
        nanos: nanos.split_ascii_whitespace().next()?.parse().ok()?,
        is_worker: read("comm")?.starts_with(WORKERS),
    })
}

fn children_of(pid: u32, thread: u32) -> Vec<u32> {
    fs::read_to_string(format!("/proc/{pid}/task/{thread}/children"))
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|child| child.parse().ok())
        .collect()
}

/// Processor time of the calling thread.
#[must_use]
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Bytes of memory that the process has resident.
pub fn resident_bytes(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok())
        .map(|kib| kib * 1_024)
        .ok_or_else(|| io::Error::other(format!("process {pid} has no VmRSS line")))
}

/// Bytes that the process has caused to be sent to disks. A page counts when it becomes dirty, and not again until it has
/// been written; what other processes write counts for them.
pub fn written_bytes(pid: u32) -> io::Result<u64> {
    write_bytes_line(&fs::read_to_string(format!("/proc/{pid}/io"))?)
        .ok_or_else(|| io::Error::other(format!("process {pid} has no write_bytes line")))
}

/// The same for the calling thread.
pub fn written_bytes_of_thread() -> io::Result<u64> {
    write_bytes_line(&fs::read_to_string("/proc/thread-self/io")?)
        .ok_or_else(|| io::Error::other("this thread has no write_bytes line"))
}

/// Not `wchar`, which counts sockets too, nor `cancelled_write_bytes`.
fn write_bytes_line(text: &str) -> Option<u64> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes:"));
    value?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::process::{self, Command, Stdio};

    use super::*;

    #[test]
    fn work_on_another_thread_is_charged_to_the_process() {
        let before = CpuReading::take(process::id(), false).unwrap();
        let (spent, after) = std::thread::scope(|scope| {
            std::thread::Builder::new()
                .name(format!("{WORKERS}-0"))
                .spawn_scoped(scope, || {
                    let mut sum = 0_u64;
                    while thread_time() < Duration::from_millis(20) {
                        sum = black_box(sum.wrapping_add(1));
                    }
                    // Read before the thread ends: its counters go with it.
                    (
                        thread_time(),
                        CpuReading::take(process::id(), false).unwrap(),
                    )
                })
                .unwrap()
                .join()
                .unwrap()
        });
        let charged = after.since(&before);
        let worker = Duration::from_nanos(charged.workers);
        // The kernel brings the counter up to date at every tick, and other tests run beside this one.
        assert!(worker > spent / 2, "{worker:?} of {spent:?}");
        assert!(charged.all >= charged.workers);
    }

    #[test]
    fn children_are_counted_only_on_request() {
        let mut shell = Command::new("sh")
            .args(["-c", "read line; echo ready; read line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let alone = CpuReading::take(process::id(), false).unwrap();
        let family = CpuReading::take(process::id(), true).unwrap();
        assert!(!alone.0.contains_key(&shell.id()));
        assert!(family.0.contains_key(&shell.id()));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(CpuReading::take(shell.id(), false).is_err());
    }

    #[test]
    fn bytes_for_disks_are_told_from_others() {
        let text =
            "rchar: 1\nwchar: 2\nread_bytes: 3\nwrite_bytes: 4096\ncancelled_write_bytes: 5\n";
        assert_eq!(write_bytes_line(text), Some(4_096));
        assert_eq!(write_bytes_line("wchar: 2\n"), None);
        let all = written_bytes(process::id()).unwrap();
        assert!(
            written_bytes_of_thread().unwrap() <= all.max(written_bytes(process::id()).unwrap())
        );
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident_bytes(process::id()).unwrap() > 100_000);
    }
}
