//! One keep-alive connection with at most one request in flight.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::answer::{self, Answer, Parsed};
use super::report::Failure;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The request that a connection waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) ticket: u64,
    /// When its latency began, in nanoseconds of the run.
    pub(super) from: u64,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: TcpStream,
    pub(super) flight: Option<Flight>,
    outgoing: Vec<u8>,
    written: usize,
    /// The beginning of an answer that came in parts; empty while answers come whole.
    incoming: Vec<u8>,
    incoming_needed: usize,
}

/// What was found on a readable socket.
#[derive(Debug)]
pub(super) enum Received<'a> {
    Answer(Answer<'a>),
    /// The answer is not whole yet.
    More,
    /// The socket had nothing.
    Nothing,
}

/// All of 127.0.0.0/8 is this machine. Visitors are spread over it: neighbours may count as one.
fn loopback_address(visitor: u16) -> Ipv4Addr {
    let [high, low] = visitor.to_be_bytes();
    Ipv4Addr::new(127, 1 + high % 254, low, 1)
}

fn connect_from(source: Ipv4Addr, addr: SocketAddr) -> io::Result<TcpStream> {
    let socket = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::net::bind(&socket, &SocketAddr::from((source, 0)))?;
    rustix::net::connect(&socket, &addr)?;
    Ok(TcpStream::from(socket))
}

impl Connection {
    /// Connects from the loopback address of that `visitor`, or from the usual one.
    pub(super) fn open(addr: SocketAddr, visitor: Option<u16>) -> io::Result<Self> {
        let socket = match visitor {
            Some(visitor) => connect_from(loopback_address(visitor), addr)?,
            None => TcpStream::connect_timeout(&addr, CONNECT_TIMEOUT)?,
        };
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            flight: None,
            outgoing: Vec::new(),
            written: 0,
            incoming: Vec::new(),
            incoming_needed: 0,
        })
    }

    /// Sends the request that `compose` writes. `Ok(false)`: some of it must wait until the socket takes more.
    pub(super) fn send(
        &mut self,
        from: u64,
        compose: impl FnOnce(&mut Vec<u8>) -> u64,
    ) -> io::Result<bool> {
        self.outgoing.clear();
        self.written = 0;
        let ticket = compose(&mut self.outgoing);
        self.flight = Some(Flight { ticket, from });
        self.flush()
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.written < self.outgoing.len()
    }

    /// Sends on. `Ok(true)` when everything has left.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        while self.has_unsent() {
            match self.socket.write(&self.outgoing[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Reads once. Whole answers are parsed where they were read; only parts are kept.
    pub(super) fn receive<'a>(&'a mut self, buffer: &'a mut [u8]) -> Result<Received<'a>, Failure> {
        let count = match self.socket.read(buffer) {
            Ok(0) => return Err(Failure::Lost),
            Ok(count) => count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(Received::Nothing);
            }
            Err(_) => return Err(Failure::Lost),
        };
        if self.flight.is_none() {
            return Err(Failure::Malformed);
        }
        if !self.incoming.is_empty() {
            self.incoming.extend_from_slice(&buffer[..count]);
            if self.incoming.len() < self.incoming_needed {
                return Ok(Received::More);
            }
            return Ok(match answer::parse(&self.incoming)? {
                Parsed::Whole(answer, _) => Received::Answer(answer),
                Parsed::Partial(needed) => {
                    self.incoming_needed = needed;
                    Received::More
                }
            });
        }
        Ok(match answer::parse(&buffer[..count])? {
            Parsed::Whole(answer, _) => Received::Answer(answer),
            Parsed::Partial(needed) => {
                self.incoming.extend_from_slice(&buffer[..count]);
                self.incoming_needed = needed;
                Received::More
            }
        })
    }

    /// Forgets the answer that was just judged.
    pub(super) fn land(&mut self) {
        self.flight = None;
        self.incoming.clear();
        self.incoming_needed = 0;
    }
}
