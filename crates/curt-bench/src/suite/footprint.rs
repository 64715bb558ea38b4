//! Bytes on disk per link, and the time to the first redirect.

use anyhow::Context as _;

use super::curt::CurtHome;
use super::process::free_address;
use super::store::{PreparedStore, forget_pages};
use super::{SuiteOptions, say, target_of};
use crate::median::Spread;

/// Starts that are timed.
const STARTS: u64 = 5;
pub(super) const MIB: f64 = 1_048_576.0;

/// What links take on disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskResults {
    pub(super) file_bytes: u64,
    pub(super) bytes_per_link: f64,
    pub(super) target_bytes_per_link: f64,
}

impl DiskResults {
    pub(super) fn beyond_target(&self) -> f64 {
        self.bytes_per_link - self.target_bytes_per_link
    }
}

pub(super) fn disk(store: &PreparedStore) -> anyhow::Result<DiskResults> {
    let file_bytes = store.bytes()?;
    let links = store.keys.len() as f64;
    let target_bytes: usize = (0..store.keys.len())
        .map(|place| target_of(&store.keys.text(place)).len())
        .sum();
    Ok(DiskResults {
        file_bytes,
        bytes_per_link: (file_bytes - store.empty_bytes) as f64 / links,
        target_bytes_per_link: target_bytes as f64 / links,
    })
}

/// How long starts took, in milliseconds, the memory of a server that has just started, and the size of its executable.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartResults {
    pub(super) millis: Spread,
    pub(super) resident_bytes: f64,
    pub(super) binary_bytes: f64,
}

/// Times starts from the call to the first redirect, with the data file out of the system's memory.
pub(super) fn start(options: &SuiteOptions, store: &PreparedStore) -> anyhow::Result<StartResults> {
    say("==> start: timing the first redirect");
    let file = store.copy("start")?;
    let home = CurtHome::new(&options.curt, &store.folder("curt-start"), &file)?;
    // The first start makes an API key and fills the key supply; those that follow are the usual ones.
    home.start(&[], &[], &[])?.stop()?;
    let mut millis = Vec::new();
    let mut resident_bytes = 0.0_f64;
    for start in 0..STARTS {
        forget_pages(&file)?;
        let addr = free_address()?;
        let place = usize::try_from(start)? * 7_919 % store.keys.len();
        let path = format!("/{}", store.keys.text(place));
        let (server, taken) = home.start_timed(addr, &path)?;
        millis.push(taken.as_secs_f64() * 1e3);
        resident_bytes = resident_bytes.max(server.resident_bytes()?);
        server.stop()?;
    }
    let millis = Spread::of(&millis).context("nothing was started")?;
    let binary_bytes = std::fs::metadata(&options.curt)?.len() as f64;
    say(&format!(
        "    first redirect after {millis:.0} ms, {:.1} MiB of memory, executable of {:.1} MiB",
        resident_bytes / MIB,
        binary_bytes / MIB
    ));
    Ok(StartResults {
        millis,
        resident_bytes,
        binary_bytes,
    })
}
