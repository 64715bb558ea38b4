//! Answers on their way out.
//!
//! Answers are collected while the connections that have something to say are read one after the other, and then
//! written one after the other: the kernel's receiving and sending code each stay in the processor's cache for the
//! whole round. Nobody waits: the round ends as soon as no connection is left that the kernel has reported, and long
//! before that if much has been collected.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use tokio::net::TcpStream;

use super::limit::Permit;
use super::slots::{Phase, SlotGuard};

/// Answers that are collected before they are written, whatever else is there to read.
pub(super) const OUTBOX_BYTES_MAX: usize = 64 * 1_024;

/// The part of a connection that outlives its task until its last answer is written.
pub(super) struct Line {
    pub(super) stream: RefCell<TcpStream>,
    pub(super) slot: SlotGuard,
    pub(super) permit: Permit,
    /// Answers that the socket did not take, in order.
    unsent: RefCell<Vec<u8>>,
    broken: Cell<bool>,
}

/// The client is gone.
pub(super) struct Broken;

impl Line {
    pub(super) fn new(stream: TcpStream, slot: SlotGuard, permit: Permit) -> Rc<Self> {
        Rc::new(Self {
            stream: RefCell::new(stream),
            slot,
            permit,
            unsent: RefCell::default(),
            broken: Cell::new(false),
        })
    }

    /// Writes at once what the socket takes and keeps the rest, which wakes the connection.
    fn send(&self, bytes: &[u8]) {
        let mut unsent = self.unsent.borrow_mut();
        let mut sent = 0;
        if unsent.is_empty() {
            match self.stream.borrow().try_write(bytes) {
                Ok(taken) => sent = taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => {
                    self.broken.set(true);
                    return self.slot.wake();
                }
            }
        }
        if sent < bytes.len() {
            unsent.extend_from_slice(&bytes[sent..]);
            self.slot.enter(Phase::Writing);
            self.slot.wake();
        }
    }

    /// Ready when the socket has taken everything; says whether there was something left to take. Nothing is read in
    /// the meantime, so that a client that does not read its answers cannot make them pile up.
    pub(super) fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<Result<bool, Broken>> {
        if self.broken.get() {
            return Poll::Ready(Err(Broken));
        }
        let mut unsent = self.unsent.borrow_mut();
        if unsent.is_empty() {
            return Poll::Ready(Ok(false));
        }
        let stream = self.stream.borrow();
        loop {
            if ready!(stream.poll_write_ready(cx)).is_err() {
                return Poll::Ready(Err(Broken));
            }
            match stream.try_write(&unsent) {
                Ok(sent) if sent == unsent.len() => break,
                Ok(sent) => drop(unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Poll::Ready(Err(Broken)),
            }
        }
        *unsent = Vec::new();
        Poll::Ready(Ok(true))
    }
}

/// One worker's answers of the present round.
#[derive(Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// Whose the bytes are, and up to which position.
    owners: Vec<(Rc<Line>, usize)>,
    /// The task that ends the round, unless it has been told already.
    closer: Option<Waker>,
}

impl Outbox {
    /// Where to write the next answers. Bytes that nobody was named for, because their connection panicked, are gone:
    /// they must not reach another client.
    pub(super) fn open(&mut self) -> &mut Vec<u8> {
        let owned = self.owners.last().map_or(0, |(_, end)| *end);
        self.bytes.truncate(owned);
        &mut self.bytes
    }

    /// Names whose the bytes are that were written since [`open`](Self::open).
    pub(super) fn address(&mut self, line: &Rc<Line>) {
        self.owners.push((Rc::clone(line), self.bytes.len()));
        if self.bytes.len() >= OUTBOX_BYTES_MAX {
            self.flush();
        } else if let Some(closer) = self.closer.take() {
            closer.wake();
        }
    }

    pub(super) fn flush(&mut self) {
        let mut start = 0;
        for (line, end) in self.owners.drain(..) {
            line.send(&self.bytes[start..end]);
            start = end;
        }
        self.bytes.clear();
    }

    /// Ends the round. `closer` is woken by the first answer of the next one, and so runs behind every connection
    /// that was ready by then.
    pub(super) fn end_round(&mut self, closer: &Waker) {
        self.flush();
        self.closer = Some(closer.clone());
    }
}
