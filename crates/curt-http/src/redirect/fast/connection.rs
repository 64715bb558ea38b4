//! One connection on its worker: read, recognise, answer, and pass on what is not a redirect.
//!
//! A turn reads into the worker's buffer and answers every complete request in it into the worker's
//! [outbox](super::outbox), which is written once. What is left of either, a head that is still incomplete or an answer
//! that the socket did not take, is copied into the connection: an idle connection owns no buffer at all.

use std::future::poll_fn;
use std::mem::{self, MaybeUninit};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use axum::extract::ConnectInfo;
use curt_accounts::ConstantTime;
use curt_core::limits::HTTP_HEAD_BYTES_MAX;
use curt_core::reserved::is_reserved;
use curt_core::{DomainId, Key, LinkRef};
use curt_links::Resolution;
use http::header::CONNECTION;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::client_socket::{Broken, ClientSocket};
use super::live_answer::write_redirect;
use super::outbox::OUTBOX_BYTES_MAX;
use super::redirect_counts::{LoadedLink, RedirectCounts};
use super::routed::{RoutedRequest, write_response};
use super::slots::{Phase, SlotGuard};
use super::worker::{INPUT_BYTES, Scratch, Worker};
use crate::metrics::CutReason;
use crate::redirect::{
    GetFrame, ParsedRequest, Persistence, PlainGet, Resolved, build_request, read_request,
};
use crate::server::final_response::FinalResponse;
use crate::server::handoff::HandedOffConnection;
use crate::server::limit::Permit;
use crate::server::linger::linger;

const _: () = assert!(HTTP_HEAD_BYTES_MAX < INPUT_BYTES);

pub(crate) struct Connection {
    socket: Rc<ClientSocket>,
    peer: SocketAddr,
    /// Bytes received and not yet answered.
    carry: Vec<u8>,
    next: Next,
}

/// What is to be done once everything written so far has been sent.
enum Next {
    Read,
    /// Answer what is in `carry`, the first request with this link if there is one.
    Answer(Option<LoadedLink>),
    Load(Key, GetFrame),
    /// Have the router answer the first request in `carry`.
    Route(GetFrame),
    HandOff,
    /// Close after the client has seen the answer.
    Linger,
    Close,
    Cut(CutReason),
}

/// Serves the connection until it is closed or handed over. It counts as open from this call on, and not from the first
/// turn: a server that stops in between would think that nobody is left.
pub(crate) fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    permit: Permit,
    worker: Rc<Worker>,
) -> impl Future<Output = ()> {
    let connection = Connection {
        socket: ClientSocket::new(stream, worker.slots.take(), permit),
        peer,
        carry: Vec::new(),
        next: Next::Read,
    };
    take_turns(connection, worker)
}

/// Serves a connection whose first bytes, up to `received`, were read before.
pub(super) async fn resume(
    stream: TcpStream,
    peer: SocketAddr,
    (permit, slot): (Permit, SlotGuard),
    received: Vec<u8>,
    worker: Rc<Worker>,
) {
    let next = match received.is_empty() {
        true => Next::Read,
        false => Next::Answer(None),
    };
    let connection = Connection {
        socket: ClientSocket::new(stream, slot, permit),
        peer,
        carry: received,
        next,
    };
    connection.socket.slot.enter(connection.awaited());
    take_turns(connection, worker).await;
}

async fn take_turns(mut connection: Connection, worker: Rc<Worker>) {
    loop {
        match poll_fn(|cx| connection.poll_turns(cx, &worker)).await {
            // Boxed: a look-up in the store is rare, and its state would be part of every idle connection.
            Next::Load(key, frame) => {
                connection.next = Box::pin(connection.load(&worker, &key, frame)).await;
            }
            Next::Route(frame) => {
                connection.next = Box::pin(connection.ask_router(&worker, frame, None)).await;
            }
            Next::HandOff => return connection.hand_off(&worker),
            Next::Linger => return connection.linger().await,
            Next::Cut(reason) => return connection.cut(&worker, reason),
            Next::Read | Next::Answer(_) | Next::Close => return,
        }
    }
}

fn link(key: &str) -> LinkRef<'_> {
    LinkRef {
        domain: DomainId::DEFAULT,
        key,
    }
}

impl Connection {
    /// Reads and answers until something else has to be done.
    fn poll_turns(&mut self, cx: &mut Context<'_>, worker: &Worker) -> Poll<Next> {
        self.socket.slot.remember(cx.waker());
        if let Some(reason) = self.socket.slot.expired() {
            return Poll::Ready(Next::Cut(reason));
        }
        loop {
            match ready!(self.socket.poll_sent(cx)) {
                Ok(false) => {}
                Ok(true) => self.socket.slot.enter(self.awaited()),
                Err(Broken) => return Poll::Ready(Next::Close),
            }
            match mem::replace(&mut self.next, Next::Read) {
                Next::Read => {
                    if ready!(self.poll_read(cx, worker)).is_err() {
                        return Poll::Ready(Next::Close);
                    }
                }
                Next::Answer(loaded) => {
                    let scratch = &mut *worker.scratch.borrow_mut();
                    let filled = self.carry.len();
                    scratch.input[..filled].copy_from_slice(&self.carry);
                    self.answer(worker, scratch, filled, loaded);
                }
                other => return Poll::Ready(other),
            }
        }
    }

    /// One read behind the bytes kept from before, and the answers to all that is complete. An error means that
    /// nothing more will come.
    fn poll_read(&mut self, cx: &mut Context<'_>, worker: &Worker) -> Poll<Result<(), Ended>> {
        let scratch = &mut *worker.scratch.borrow_mut();
        let kept = self.carry.len();
        scratch.input[..kept].copy_from_slice(&self.carry);
        let received = match self.socket.poll_receive(cx, &mut scratch.input[kept..]) {
            Poll::Ready(Ok(received)) => received,
            Poll::Ready(Err(_)) => return Poll::Ready(Err(Ended)),
            Poll::Pending if worker.draining.get() && kept == 0 && !self.has_input() => {
                return Poll::Ready(Err(Ended));
            }
            Poll::Pending => return Poll::Pending,
        };
        if received == 0 {
            return Poll::Ready(Err(Ended));
        }
        self.answer(worker, scratch, kept + received, None);
        Poll::Ready(Ok(()))
    }

    /// Whether the kernel holds bytes that the runtime has not heard of yet.
    fn has_input(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        SockRef::from(&self.socket.stream)
            .peek(&mut byte)
            .is_ok_and(|bytes| bytes > 0)
    }

    /// Answers the complete requests among the first `filled` bytes of the input, the first one with `loaded` if that
    /// is given, and decides what comes next.
    fn answer(
        &mut self,
        worker: &Worker,
        scratch: &mut Scratch,
        filled: usize,
        mut loaded: Option<LoadedLink>,
    ) {
        let now = worker.clock.now();
        scratch.heads.refresh(now);
        let mut outbox = worker.outbox.borrow_mut();
        let began = outbox.begin_round();
        let output = outbox.open();
        let before = output.len();
        let (mut done, mut redirects) = (0, RedirectCounts::default());
        self.next = loop {
            if done == filled {
                break Next::Read;
            }
            let get = match read_request(&scratch.input[done..filled]) {
                ParsedRequest::Plain(get) => get,
                ParsedRequest::Partial => break Next::Read,
                ParsedRequest::Other => break Next::HandOff,
                ParsedRequest::Refused(refusal) => {
                    let word = FinalResponse::Refused(refusal);
                    word.write(output, now);
                    worker.metrics.cut(word.reason());
                    break Next::Linger;
                }
            };
            // Before the cache: whoever has tried too many keys hears of none, live ones included.
            if worker.holds(&get, self.peer, now) {
                break Next::Route(get.frame());
            }
            let hit = match loaded.take() {
                Some(loaded) => redirects.count_loaded(loaded),
                None => match worker.resolver.cached(link(get.key), now) {
                    Some(hit) => redirects.count_hit(hit),
                    None => break missing(&get),
                },
            };
            done += get.bytes;
            // The last answer before a shutdown closes; requests pipelined in front of it are answered first.
            let closes = get.persistence == Persistence::Close
                || (worker.answers_close.get() && done == filled);
            worker.capture(&get, &hit, self.peer, now);
            write_redirect(output, &scratch.heads, &get, &hit, closes, now);
            let began = redirects.asked.unwrap_or(began);
            worker.log_access(&get, &hit, self.peer, began);
            if closes && done == filled {
                break Next::Close;
            }
            if closes {
                break Next::Linger;
            }
            if output.len() >= OUTBOX_BYTES_MAX {
                break Next::Answer(None);
            }
        };
        let answered = output.len() > before;
        // First, because an answer that cannot be sent at once gives the client another deadline.
        self.keep(&scratch.input[done..filled], done > 0);
        worker.tally.count(&redirects);
        outbox.count_redirects(&redirects);
        match answered {
            true => outbox.address(&self.socket),
            false => outbox.end_unused_round(),
        }
        if !matches!(self.next, Next::Read) {
            outbox.flush();
        }
    }

    /// Keeps the bytes that are not answered yet and starts the time for what is awaited now.
    fn keep(&mut self, rest: &[u8], progressed: bool) {
        if rest.is_empty() {
            if self.carry.capacity() > 0 {
                self.carry = Vec::new();
            }
        } else {
            self.carry.clear();
            self.carry.extend_from_slice(rest);
        }
        // A head that is still incomplete gets no time beyond what it had.
        if progressed || self.socket.slot.phase() != self.awaited() {
            self.socket.slot.enter(self.awaited());
        }
    }

    /// What the client is waited for, once it has all its answers.
    fn awaited(&self) -> Phase {
        if self.carry.is_empty() {
            Phase::Idle
        } else {
            Phase::Head
        }
    }

    /// Loads the link; the router answers unless it is live.
    async fn load(&mut self, worker: &Worker, key: &Key, frame: GetFrame) -> Next {
        self.socket.slot.enter(Phase::Elsewhere);
        let (begun, asked) = (ConstantTime::begin(), Instant::now());
        match worker.resolver.resolve(link(key.as_str())).await {
            Ok(Resolution::Live(link)) => Next::Answer(Some(LoadedLink { link, asked })),
            resolution => {
                let resolved = Resolved { resolution, begun };
                self.ask_router(worker, frame, Some(resolved)).await
            }
        }
    }

    /// Has the router answer the first request in `carry`, with what the key was `resolved` to.
    async fn ask_router(
        &mut self,
        worker: &Worker,
        frame: GetFrame,
        resolved: Option<Resolved>,
    ) -> Next {
        let Some(mut request) = build_request(&self.carry[..frame.bytes]) else {
            return Next::HandOff;
        };
        self.socket.slot.enter(Phase::Elsewhere);
        request.extensions_mut().insert(ConnectInfo(self.peer));
        if let Some(resolved) = resolved {
            request.extensions_mut().insert(resolved);
        }
        let (routed, response) = RoutedRequest::new(request);
        if !worker.handoffs.send_request(routed) {
            let word = FinalResponse::Busy(CutReason::Overload);
            worker.metrics.cut(word.reason());
            self.send(worker, |out| word.write(out, worker.clock.now()));
            return Next::Linger;
        }
        let Ok(response) = response.await else {
            return Next::Close;
        };
        self.carry.drain(..frame.bytes);
        let is_last = self.carry.is_empty();
        let closes = frame.persistence == Persistence::Close
            || response.headers().contains_key(CONNECTION)
            || (worker.answers_close.get() && is_last);
        let now = worker.clock.now();
        self.send(worker, |out| {
            write_response(out, &response, frame, closes, now);
        });
        match (closes, is_last) {
            (true, true) => Next::Close,
            (true, false) => Next::Linger,
            (false, _) => Next::Answer(None),
        }
    }

    /// Sends what `write` writes, behind the responses before it.
    fn send(&self, worker: &Worker, write: impl FnOnce(&mut Vec<u8>)) {
        let mut outbox = worker.outbox.borrow_mut();
        write(outbox.open());
        outbox.address(&self.socket);
        outbox.flush();
    }

    fn hand_off(self, worker: &Worker) {
        let Some(socket) = Rc::into_inner(self.socket) else {
            debug_assert!(false, "the outbox is empty before a connection leaves");
            return;
        };
        if let Ok(stream) = socket.stream.into_std() {
            let handed = HandedOffConnection {
                stream,
                peer: self.peer,
                prefix: self.carry,
                permit: socket.permit,
            };
            let now = worker.clock.now();
            worker.handoffs.send(handed, &worker.metrics, now);
        }
    }

    async fn linger(self) {
        self.socket.slot.enter(Phase::Elsewhere);
        if let Some(socket) = Rc::into_inner(self.socket) {
            linger(&mut { socket.stream }).await;
        }
    }

    fn cut(self, worker: &Worker, reason: CutReason) {
        worker.metrics.cut(reason);
        if reason == CutReason::HeaderTimeout {
            let mut word = Vec::new();
            FinalResponse::HeaderTimeout.write(&mut word, worker.clock.now());
            if let Err(error) = self.socket.stream.try_write(&word) {
                tracing::trace!(%error, "final response not taken");
            }
        }
    }
}

/// The other side is gone, or has said that it is done.
struct Ended;

/// What to do about a key of which there is no copy. Names of routes are never links, so the store is not asked.
fn missing(get: &PlainGet<'_>) -> Next {
    match Key::parse(get.key) {
        Ok(key) if !is_reserved(key.as_str()) => Next::Load(key, get.frame()),
        _ => Next::HandOff,
    }
}
