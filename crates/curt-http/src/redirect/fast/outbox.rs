//! Answers on their way out.
//!
//! Answers are collected while the connections that have something to say are read one after the other, and then given
//! to the kernel [together](super::response_sender). Nobody waits: the round ends as soon as no connection is left that
//! the kernel has reported, and long before that if much has been collected.

use std::rc::Rc;
use std::task::Waker;

use tokio::time::Instant;

use super::client_socket::ClientSocket;
use super::redirect_counts::RedirectCounts;
use super::response_sender::ResponseSender;
use crate::latency::{LatencyHistogram, LatencyTally};

/// Answers that are collected before they are written, whatever else is there to read.
pub(crate) const OUTBOX_BYTES_MAX: usize = 64 * 1_024;

/// One worker's answers of the present round.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    /// Whose the bytes are, and up to which position.
    owners: Vec<(Rc<ClientSocket>, usize)>,
    /// The task that ends the round, unless it has been told already.
    closer: Option<Waker>,
    response_sender: ResponseSender,
    /// When the first request of the round was read.
    began: Option<Instant>,
    /// Redirects from the cache in this round.
    redirects: u64,
    latency: LatencyTally,
}

impl Outbox {
    pub(crate) fn new(response_sender: ResponseSender) -> Self {
        Self {
            response_sender,
            ..Self::default()
        }
    }

    /// Where to write the next answers. Bytes that nobody was named for, because their connection panicked, are gone:
    /// they must not reach another client.
    pub(crate) fn open(&mut self) -> &mut Vec<u8> {
        let owned = self.owners.last().map_or(0, |(_, end)| *end);
        self.bytes.truncate(owned);
        &mut self.bytes
    }

    /// Returns when the round began: with this request, if it is the first.
    pub(crate) fn begin_round(&mut self) -> Instant {
        *self.began.get_or_insert_with(Instant::now)
    }

    /// Takes [`begin_round`](Self::begin_round) back when there is nothing to send.
    pub(crate) fn end_unused_round(&mut self) {
        if self.owners.is_empty() {
            self.began = None;
        }
    }

    /// Counts redirects among the bytes that [`address`](Self::address) is called for next.
    pub(super) fn count_redirects(&mut self, redirects: &RedirectCounts) {
        self.redirects += redirects.hits;
        if let Some(asked) = redirects.asked {
            self.latency.count(asked.elapsed(), 1);
        }
    }

    /// Passes the times of redirects on.
    pub(crate) fn flush_latency(&self, histogram: &LatencyHistogram) {
        self.latency.flush(histogram);
    }

    /// Names whose the bytes are that were written since [`open`](Self::open).
    pub(crate) fn address(&mut self, socket: &Rc<ClientSocket>) {
        if socket.queued.replace(true) {
            self.append_behind(socket);
        } else {
            self.owners.push((Rc::clone(socket), self.bytes.len()));
        }
        if self.bytes.len() >= OUTBOX_BYTES_MAX {
            self.flush();
        } else if let Some(closer) = self.closer.take() {
            closer.wake();
        }
    }

    /// A client's second answer of a round: part of the first if nobody else's lies between, else it waits until the
    /// first has been sent, because sends that are given to the kernel together have no order.
    fn append_behind(&mut self, socket: &Rc<ClientSocket>) {
        match self.owners.last_mut() {
            Some((last, end)) if Rc::ptr_eq(last, socket) => *end = self.bytes.len(),
            last => {
                let start = last.map_or(0, |(_, end)| *end);
                let second = self.bytes.split_off(start);
                self.flush();
                self.bytes = second;
                socket.queued.set(true);
                self.owners.push((Rc::clone(socket), self.bytes.len()));
            }
        }
    }

    pub(crate) fn flush(&mut self) {
        let mut messages = Vec::with_capacity(self.owners.len());
        let mut start = 0;
        for (socket, end) in &self.owners {
            socket.queued.set(false);
            let bytes = &self.bytes[start..*end];
            start = *end;
            if socket.unsent.borrow().is_empty() {
                messages.push((&**socket, bytes));
            } else {
                socket.keep(bytes);
            }
        }
        for ((socket, bytes), outcome) in messages.iter().zip(self.response_sender.send(&messages))
        {
            socket.note_sent(bytes, outcome);
        }
        self.owners.clear();
        self.bytes.clear();
        if let Some(began) = self.began.take()
            && self.redirects > 0
        {
            self.latency.count(began.elapsed(), self.redirects);
            self.redirects = 0;
        }
    }

    /// Ends the round. `closer` is woken by the first answer of the next one, and so runs behind every connection
    /// that was ready by then.
    pub(crate) fn end_round(&mut self, closer: &Waker) {
        self.flush();
        self.closer = Some(closer.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use prometheus_client::metrics::gauge::Gauge;
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::redirect::fast::slots::{Phase, Slots};
    use crate::server::limit::ConnectionLimit;
    use crate::settings::ServerSettings;

    /// More than a socket takes at once.
    const MUCH: usize = 16 * 1_024 * 1_024;

    async fn socket() -> (Rc<ClientSocket>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let slot = Slots::new(&ServerSettings::default()).take();
        let limit = std::sync::Arc::new(ConnectionLimit::new(1, Gauge::default()));
        let permit = limit.admit(client.local_addr().unwrap().ip()).unwrap();
        (ClientSocket::new(stream, slot, permit), client)
    }

    async fn writable(socket: &ClientSocket) {
        poll_fn(|cx| socket.stream.poll_write_ready(cx))
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn answers_behind_a_blocked_one_wait_their_turn() {
        let (socket, mut client) = socket().await;
        let mut outbox = Outbox::default();
        outbox.open().resize(MUCH, b'a');
        outbox.address(&socket);
        assert_eq!(socket.slot.phase(), Phase::Writing);
        // The client makes room before the second answer comes: it must not slip in front of the rest of the first.
        let mut received = vec![0; MUCH / 64];
        client.read_exact(&mut received).await.unwrap();
        writable(&socket).await;
        outbox.open().extend_from_slice(b"end");
        outbox.address(&socket);
        outbox.flush();

        let reading = async {
            let mut rest = vec![0; MUCH - received.len() + 3];
            client.read_exact(&mut rest).await.unwrap();
            rest
        };
        let sending = poll_fn(|cx| socket.poll_sent(cx));
        let (rest, sent) = tokio::join!(reading, sending);
        assert!(matches!(sent, Ok(true)));
        let (first, second) = rest.split_at(rest.len() - 3);
        assert!(first.iter().all(|byte| *byte == b'a'));
        assert_eq!(second, b"end");
        assert!(matches!(
            poll_fn(|cx| socket.poll_sent(cx)).await,
            Ok(false)
        ));
    }

    #[tokio::test]
    async fn each_client_gets_its_own_answers_and_nobody_gets_an_orphans() {
        let (first, mut first_client) = socket().await;
        let (second, mut second_client) = socket().await;
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
        let (gone, gone_client) = socket().await;
        let (there, mut there_client) = socket().await;
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
