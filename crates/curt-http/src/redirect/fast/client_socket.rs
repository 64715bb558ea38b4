//! A client's socket: what is received from it and sent to it.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::net::TcpStream;

use super::slots::{Phase, SlotGuard};
use crate::server::limit::Permit;

/// The part of a connection that outlives its task until its last answer is written.
pub(crate) struct ClientSocket {
    pub(crate) stream: TcpStream,
    pub(crate) slot: SlotGuard,
    pub(crate) permit: Permit,
    /// Answers that the socket did not take, in order.
    pub(super) unsent: RefCell<Vec<u8>>,
    broken: Cell<bool>,
    /// Whether an answer is in the outbox.
    pub(super) queued: Cell<bool>,
}

/// The client is gone.
pub(crate) struct Broken;

impl AsFd for ClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl ClientSocket {
    pub(crate) fn new(stream: TcpStream, slot: SlotGuard, permit: Permit) -> Rc<Self> {
        Rc::new(Self {
            stream,
            slot,
            permit,
            unsent: RefCell::default(),
            broken: Cell::new(false),
            queued: Cell::new(false),
        })
    }

    pub(super) fn note_sent(&self, bytes: &[u8], outcome: io::Result<usize>) {
        match outcome {
            Ok(sent) if sent == bytes.len() => {}
            Ok(sent) => self.keep(&bytes[sent..]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.keep(bytes),
            Err(_) => {
                self.broken.set(true);
                self.slot.wake();
            }
        }
    }

    /// Keeps what the socket did not take; the connection is woken to send it.
    pub(super) fn keep(&self, rest: &[u8]) {
        self.unsent.borrow_mut().extend_from_slice(rest);
        self.slot.enter(Phase::Writing);
        self.slot.wake();
    }

    /// Receives what is there. A short read has emptied the socket, so the next one waits for the kernel to report more
    /// instead of asking in vain.
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(buffer) {
                Ok(received) => {
                    if 0 < received && received < buffer.len() {
                        self.mark_empty();
                    }
                    return Poll::Ready(Ok(received));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Tells the runtime what it cannot know: it believes a socket to be readable until a read finds it empty.
    fn mark_empty(&self) {
        let found_empty = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        if let Err(error) = self.stream.try_io(Interest::READABLE, found_empty)
            && error.kind() != io::ErrorKind::WouldBlock
        {
            tracing::trace!(%error, "a socket failed after a read");
        }
    }

    /// Ready when the socket has taken everything; says whether there was something left to take. Nothing is read in
    /// the meantime, so that a client that does not read its answers cannot make them pile up.
    pub(crate) fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<Result<bool, Broken>> {
        if self.broken.get() {
            return Poll::Ready(Err(Broken));
        }
        let mut unsent = self.unsent.borrow_mut();
        if unsent.is_empty() {
            return Poll::Ready(Ok(false));
        }
        let stream = &self.stream;
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
