use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self as unix, UnixListener};

use anyhow::{Result, bail};
use rand::RngExt;

/// How many ports are tried before giving up; nearly every one is free.
const TRIES_MAX: u32 = 1_000;
/// How often an engine is started again because somebody else was quicker to take its port.
const STARTS_MAX: u32 = 3;

/// A loopback port that is free now, and that no other test of this machine takes while this is held.
///
/// It lies below the range that the system hands out to outgoing connections. Inside that range, a client could take
/// the port of a killed engine before its restart, or even connect to itself.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _claim: UnixListener,
}

impl Port {
    pub fn free() -> Result<Self> {
        let range = below_outgoing();
        for _ in 0..TRIES_MAX {
            let number = rand::rng().random_range(range.clone());
            if let Ok(_claim) = claim(number)
                && is_free(number)
            {
                return Ok(Self { number, _claim });
            }
        }
        bail!("no free port in {range:?} after {TRIES_MAX} tries")
    }

    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}

impl std::fmt::Display for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number.fmt(f)
    }
}

/// Starts something on new ports, and once more on others when these were taken in the meantime by a program that
/// does not know of our claims.
pub(super) fn on_free_ports<T>(start: impl Fn() -> Result<T>) -> Result<T> {
    for _ in 1..STARTS_MAX {
        match start() {
            Err(error) if format!("{error:#}").contains("in use") => {}
            done => return done,
        }
    }
    start()
}

fn below_outgoing() -> Range<u16> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = text.split_whitespace().next();
    let first: u16 = first.and_then(|port| port.parse().ok()).unwrap_or(32_768);
    10_000..first.max(15_000)
}

/// A name that only one can hold, among those that share the ports. The system frees it when its holder ends in any way.
fn claim(number: u16) -> io::Result<UnixListener> {
    let name = unix::SocketAddr::from_abstract_name(format!("curt-port-{number}"))?;
    UnixListener::bind_addr(&name)
}

/// On all addresses, because some engines listen there too.
fn is_free(number: u16) -> bool {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, number)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn held_ports_are_distinct_and_free() {
        let ports: Vec<Port> = (0..200).map(|_| Port::free().unwrap()).collect();
        let distinct: HashSet<u16> = ports.iter().map(Port::number).collect();
        assert_eq!(distinct.len(), ports.len());
        assert!(ports.iter().all(|port| is_free(port.number())));
    }

    #[test]
    fn a_claimed_port_cannot_be_claimed_again() {
        let port = Port::free().unwrap();
        assert!(claim(port.number()).is_err());
        let number = port.number();
        drop(port);
        assert!(claim(number).is_ok());
    }

    #[test]
    fn a_start_is_tried_again_only_when_the_port_was_taken() {
        let starts = Cell::new(0);
        let start = |error: &'static str| {
            starts.set(starts.get() + 1);
            if starts.get() < 3 {
                anyhow::bail!(error);
            }
            Ok(starts.get())
        };
        assert_eq!(
            on_free_ports(|| start("Address already in use")).unwrap(),
            3
        );
        starts.set(0);
        assert!(on_free_ports(|| start("no such setting")).is_err());
        assert_eq!(starts.get(), 1);
    }
}
