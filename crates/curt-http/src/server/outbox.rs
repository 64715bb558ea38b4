//! Answers on their way out.
//!
//! Answers are collected while the connections that have something to say are read one after the other, and then given
//! to the kernel [together](super::post). Nobody waits: the round ends as soon as no connection is left that the kernel
//! has reported, and long before that if much has been collected.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::Interest;
use tokio::net::TcpStream;

use super::limit::Permit;
use super::post::Post;
use super::slots::{Phase, SlotGuard};

/// Answers that are collected before they are written, whatever else is there to read.
pub(super) const OUTBOX_BYTES_MAX: usize = 64 * 1_024;

/// The part of a connection that outlives its task until its last answer is written.
pub(super) struct Line {
    pub(super) stream: TcpStream,
    pub(super) slot: SlotGuard,
    pub(super) permit: Permit,
    /// Answers that the socket did not take, in order.
    unsent: RefCell<Vec<u8>>,
    broken: Cell<bool>,
    /// Whether an answer is in the outbox.
    queued: Cell<bool>,
}

/// The client is gone.
pub(super) struct Broken;

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Line {
    pub(super) fn new(stream: TcpStream, slot: SlotGuard, permit: Permit) -> Rc<Self> {
        Rc::new(Self {
            stream,
            slot,
            permit,
            unsent: RefCell::default(),
            broken: Cell::new(false),
            queued: Cell::new(false),
        })
    }

    fn sent(&self, bytes: &[u8], outcome: io::Result<usize>) {
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
    fn keep(&self, rest: &[u8]) {
        self.unsent.borrow_mut().extend_from_slice(rest);
        self.slot.enter(Phase::Writing);
        self.slot.wake();
    }

    /// Receives what is there. A short read has emptied the socket, so the next one waits for the kernel to report more
    /// instead of asking in vain.
    pub(super) fn poll_receive(
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
    pub(super) fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<Result<bool, Broken>> {
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

/// One worker's answers of the present round.
#[derive(Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// Whose the bytes are, and up to which position.
    owners: Vec<(Rc<Line>, usize)>,
    /// The task that ends the round, unless it has been told already.
    closer: Option<Waker>,
    post: Post,
}

impl Outbox {
    pub(super) fn new(post: Post) -> Self {
        Self {
            post,
            ..Self::default()
        }
    }

    /// Where to write the next answers. Bytes that nobody was named for, because their connection panicked, are gone:
    /// they must not reach another client.
    pub(super) fn open(&mut self) -> &mut Vec<u8> {
        let owned = self.owners.last().map_or(0, |(_, end)| *end);
        self.bytes.truncate(owned);
        &mut self.bytes
    }

    /// Names whose the bytes are that were written since [`open`](Self::open).
    pub(super) fn address(&mut self, line: &Rc<Line>) {
        if line.queued.replace(true) {
            self.append_behind(line);
        } else {
            self.owners.push((Rc::clone(line), self.bytes.len()));
        }
        if self.bytes.len() >= OUTBOX_BYTES_MAX {
            self.flush();
        } else if let Some(closer) = self.closer.take() {
            closer.wake();
        }
    }

    /// A client's second answer of a round: part of the first if nobody else's lies between, else it waits until the
    /// first has been sent, because sends that are given to the kernel together have no order.
    fn append_behind(&mut self, line: &Rc<Line>) {
        match self.owners.last_mut() {
            Some((last, end)) if Rc::ptr_eq(last, line) => *end = self.bytes.len(),
            last => {
                let start = last.map_or(0, |(_, end)| *end);
                let second = self.bytes.split_off(start);
                self.flush();
                self.bytes = second;
                line.queued.set(true);
                self.owners.push((Rc::clone(line), self.bytes.len()));
            }
        }
    }

    pub(super) fn flush(&mut self) {
        let mut messages = Vec::with_capacity(self.owners.len());
        let mut start = 0;
        for (line, end) in &self.owners {
            line.queued.set(false);
            let bytes = &self.bytes[start..*end];
            start = *end;
            if line.unsent.borrow().is_empty() {
                messages.push((&**line, bytes));
            } else {
                line.keep(bytes);
            }
        }
        for ((line, bytes), outcome) in messages.iter().zip(self.post.send(&messages)) {
            line.sent(bytes, outcome);
        }
        self.owners.clear();
        self.bytes.clear();
    }

    /// Ends the round. `closer` is woken by the first answer of the next one, and so runs behind every connection
    /// that was ready by then.
    pub(super) fn end_round(&mut self, closer: &Waker) {
        self.flush();
        self.closer = Some(closer.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use prometheus_client::metrics::gauge::Gauge;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;
    use crate::server::limit::ConnectionLimit;
    use crate::server::slots::Slots;
    use crate::settings::ServerSettings;

    /// More than a socket takes at once.
    const MUCH: usize = 16 * 1_024 * 1_024;

    async fn line() -> (Rc<Line>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let slot = Slots::new(&ServerSettings::default()).take();
        let limit = std::sync::Arc::new(ConnectionLimit::new(1, Gauge::default()));
        let permit = limit.admit(client.local_addr().unwrap().ip()).unwrap();
        (Line::new(stream, slot, permit), client)
    }

    async fn writable(line: &Line) {
        poll_fn(|cx| line.stream.poll_write_ready(cx))
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn answers_behind_a_blocked_one_wait_their_turn() {
        let (line, mut client) = line().await;
        let mut outbox = Outbox::default();
        outbox.open().resize(MUCH, b'a');
        outbox.address(&line);
        assert_eq!(line.slot.phase(), Phase::Writing);
        // The client makes room before the second answer comes: it must not slip in front of the rest of the first.
        let mut received = vec![0; MUCH / 64];
        client.read_exact(&mut received).await.unwrap();
        writable(&line).await;
        outbox.open().extend_from_slice(b"end");
        outbox.address(&line);
        outbox.flush();

        let reading = async {
            let mut rest = vec![0; MUCH - received.len() + 3];
            client.read_exact(&mut rest).await.unwrap();
            rest
        };
        let sending = poll_fn(|cx| line.poll_sent(cx));
        let (rest, sent) = tokio::join!(reading, sending);
        assert!(matches!(sent, Ok(true)));
        let (first, second) = rest.split_at(rest.len() - 3);
        assert!(first.iter().all(|byte| *byte == b'a'));
        assert_eq!(second, b"end");
        assert!(matches!(poll_fn(|cx| line.poll_sent(cx)).await, Ok(false)));
    }

    #[tokio::test]
    async fn each_client_gets_its_own_answers_and_nobody_gets_an_orphans() {
        let (first, mut first_client) = line().await;
        let (second, mut second_client) = line().await;
        let mut outbox = Outbox::default();
        outbox.open().extend_from_slice(b"for the first");
        outbox.address(&first);
        outbox
            .open()
            .extend_from_slice(b"written by a connection that panicked");
        outbox.open().extend_from_slice(b"for the second");
        outbox.address(&second);
        outbox.flush();
        drop((first, second));
        let (mut to_first, mut to_second) = (String::new(), String::new());
        first_client.read_to_string(&mut to_first).await.unwrap();
        second_client.read_to_string(&mut to_second).await.unwrap();
        assert_eq!(
            (&*to_first, &*to_second),
            ("for the first", "for the second")
        );
    }

    #[tokio::test]
    async fn a_client_that_is_gone_breaks_its_line_only() {
        let (gone, gone_client) = line().await;
        let (there, mut there_client) = line().await;
        // Closing with unread bytes resets the connection.
        writable(&gone).await;
        assert_eq!(gone.stream.try_write(b"unread").unwrap(), 6);
        gone_client.readable().await.unwrap();
        drop(gone_client);
        poll_fn(|cx| gone.stream.poll_read_ready(cx)).await.unwrap();
        let mut outbox = Outbox::default();
        outbox.open().extend_from_slice(b"nobody");
        outbox.address(&gone);
        outbox.open().extend_from_slice(b"somebody");
        outbox.address(&there);
        outbox.flush();
        assert!(poll_fn(|cx| gone.poll_sent(cx)).await.is_err());
        assert!(poll_fn(|cx| there.poll_sent(cx)).await.is_ok());
        let mut received = [0; 8];
        there_client.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"somebody");
    }
}
