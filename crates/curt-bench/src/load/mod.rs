//! The load generator: one thread, non-blocking sockets, one request in flight per connection ([`pipeline`]: several).
//!
//! - *Closed loop* (no rate): each connection asks again as soon as it is answered, which finds the saturated rate.
//! - *Open loop* (a rate): requests fall due at fixed times whether or not the server keeps up, and latency counts
//!   from the time at which a request fell due. A server that stalls for a second is charged for every request of that
//!   second, not for the few that happened to be in flight (no coordinated omission).
//!
//! Every load is bounded in time, requests and connections, and refuses addresses other than loopback.

mod answer;
mod connection;
mod create;
mod engine;
mod mix;
mod pace;
mod pipeline;
mod redirect;
mod report;
mod wake_timer;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::cpu::CpuReading;

pub use create::{CreateLoad, CreateReport, create};
pub use pipeline::{PipelineReport, pipeline};
pub use redirect::{RedirectLoad, Shape, redirect};
pub use report::{Failure, Latency, LoadReport};

/// Longest run.
pub const DURATION_MAX: Duration = Duration::from_secs(600);
/// Most connections of one run.
pub const CONNECTIONS_MAX: usize = 4_096;
/// Most links in one bulk request of a load.
pub const BULK_MAX: usize = curt_core::limits::BULK_LINKS_MAX;

/// Why a load could not be run at all. Failed requests are not errors: they are counted in the report.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{0} is not a loopback address: loads are only for servers on this machine")]
    NotLoopback(SocketAddr),
    #[error("{what} must be between {min} and {max}")]
    OutOfBounds {
        what: &'static str,
        min: u64,
        max: u64,
    },
    #[error("there is no key to ask for")]
    NoKeys,
    #[error("no connection to {addr}: {source}")]
    Connect { addr: SocketAddr, source: io::Error },
    #[error("cannot read what process {pid} has spent: {source}")]
    Process { pid: u32, source: io::Error },
    #[error("the event loop failed: {0}")]
    Events(#[source] io::Error),
}

/// When a load ends: at the duration, or earlier at the number of requests.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub duration: Duration,
    pub requests: Option<u64>,
}

impl Limit {
    #[must_use]
    pub fn seconds(seconds: f64) -> Self {
        Self {
            duration: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO),
            requests: None,
        }
    }

    /// So many requests, within the longest run that is allowed.
    #[must_use]
    pub fn requests(requests: u64) -> Self {
        Self {
            duration: DURATION_MAX,
            requests: Some(requests),
        }
    }
}

/// What the generator does while no answer is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// Sleep: leaves the core to others.
    #[default]
    Sleep,
    /// Poll without a pause. For a core of its own: waking a sleeping generator is charged to the server, and the
    /// faster server would pay it less often.
    Spin,
}

/// The process whose processor time is divided by the requests.
#[derive(Clone, Copy, Debug)]
pub struct ServerProcess {
    pub pid: u32,
    /// Whether processes below it count too.
    pub children: bool,
}

impl ServerProcess {
    pub(crate) fn reading(self) -> Result<CpuReading, LoadError> {
        CpuReading::take(self.pid, self.children).map_err(|source| LoadError::Process {
            pid: self.pid,
            source,
        })
    }
}

/// What both kinds of load have in common.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub addr: SocketAddr,
    pub connections: usize,
    pub limit: Limit,
    /// Requests per second of an open loop; `None` for a closed loop.
    pub rate: Option<f64>,
    pub seed: u64,
    pub idle: Idle,
    /// Whether each connection comes from a loopback address of its own, as visitors do.
    pub own_addresses: bool,
    pub server: Option<ServerProcess>,
}

impl Plan {
    /// A closed loop of 64 connections for three seconds: the setting of the comparisons.
    #[must_use]
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            connections: 64,
            limit: Limit::seconds(3.0),
            rate: None,
            seed: 1,
            idle: Idle::Sleep,
            own_addresses: false,
            server: None,
        }
    }

    /// The number of the visitor whose address a connection comes from. Another run has other visitors, some of them.
    fn visitor(&self, connection: usize) -> Option<u16> {
        self.own_addresses
            .then(|| (connection as u64 + self.seed * 512) as u16)
    }

    fn check(&self) -> Result<(), LoadError> {
        if !self.addr.ip().is_loopback() {
            return Err(LoadError::NotLoopback(self.addr));
        }
        within(
            "connections",
            self.connections as u64,
            1,
            CONNECTIONS_MAX as u64,
        )?;
        let millis = u64::try_from(self.limit.duration.as_millis()).unwrap_or(u64::MAX);
        within("duration in ms", millis, 1, DURATION_MAX.as_millis() as u64)?;
        if let Some(requests) = self.limit.requests {
            within("requests", requests, 1, 1_000_000_000)?;
        }
        if let Some(rate) = self.rate {
            // A rate that is not a number becomes 0 here, and is refused with the rest.
            within("rate per second", rate.ceil() as u64, 1, 10_000_000)?;
        }
        Ok(())
    }
}

fn within(what: &'static str, value: u64, min: u64, max: u64) -> Result<(), LoadError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(LoadError::OutOfBounds { what, min, max })
    }
}

/// Runs `traffic` to its end and measures the server around it.
fn measured<T: engine::Traffic>(plan: &Plan, traffic: &mut T) -> Result<LoadReport, LoadError> {
    let engine = engine::Engine::connect(plan, traffic)?;
    let before = plan.server.map(ServerProcess::reading).transpose()?;
    let tally = engine.run()?;
    let spent = match (plan.server, before) {
        (Some(server), Some(before)) => Some(server.reading()?.since(&before)),
        _ => None,
    };
    Ok(LoadReport::new(tally, spent))
}
