//! One connection on its worker: read, recognise, answer, and hand over what is not ours.
//!
//! A turn reads into the worker's buffer, answers every complete request in it into the worker's output buffer and
//! writes that once. What is left of either, a head that is still incomplete or an answer that the socket did not
//! take, is copied into the connection: an idle connection owns no buffer at all.

use std::future::poll_fn;
use std::io;
use std::mem::{self, MaybeUninit};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use curt_core::limits::HTTP_HEAD_BYTES_MAX;
use curt_core::reserved::is_reserved;
use curt_core::{DomainId, Key, LinkRef};
use curt_links::{Hit, Resolution};
use socket2::SockRef;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;

use super::handover::HandedOver;
use super::last_word::LastWord;
use super::limit::Permit;
use super::linger::linger;
use super::slots::{Phase, SlotGuard};
use super::worker::{INPUT_BYTES, Scratch, Worker};
use crate::metrics::CutReason;
use crate::redirect::{Asked, Persistence, finish, location, read_request};

/// Answers to pipelined requests that are collected before they are written.
const OUTPUT_BYTES_MAX: usize = 64 * 1_024;

const _: () = assert!(HTTP_HEAD_BYTES_MAX < INPUT_BYTES);

pub(super) struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    permit: Permit,
    slot: SlotGuard,
    /// Bytes received and not yet answered.
    carry: Vec<u8>,
    /// Answers that the socket has not taken yet.
    unsent: Vec<u8>,
    unsent_from: usize,
    next: Next,
}

/// What is to be done once everything written so far has been sent.
enum Next {
    Read,
    /// Answer what is in `carry`, the first request with this link if there is one.
    Answer(Option<Hit>),
    Load(Key),
    HandOver,
    /// Close after the client has seen the answer.
    Linger,
    Close,
    Cut(CutReason),
}

/// Serves the connection until it is closed or handed over.
pub(super) async fn serve(stream: TcpStream, peer: SocketAddr, permit: Permit, worker: Rc<Worker>) {
    let mut connection = Connection {
        slot: worker.slots.take(),
        stream,
        peer,
        permit,
        carry: Vec::new(),
        unsent: Vec::new(),
        unsent_from: 0,
        next: Next::Read,
    };
    loop {
        match poll_fn(|cx| connection.poll_turns(cx, &worker)).await {
            Next::Load(key) => {
                connection.slot.enter(Phase::Elsewhere);
                // Boxed: a look-up in the store is rare, and its state would be part of every idle connection.
                let loaded = Box::pin(worker.resolver.resolve(link(key.as_str()))).await;
                connection.next = match loaded {
                    Ok(Resolution::Live(hit)) => Next::Answer(Some(hit)),
                    // The router looks it up once more, from the cache of misses, and words the answer.
                    Ok(Resolution::Absent | Resolution::Gone) | Err(_) => Next::HandOver,
                };
            }
            Next::HandOver => return connection.hand_over(&worker),
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
        self.slot.remember(cx.waker());
        if let Some(reason) = self.slot.expired() {
            return Poll::Ready(Next::Cut(reason));
        }
        loop {
            if !self.unsent.is_empty() && ready!(self.poll_send(cx)).is_err() {
                return Poll::Ready(Next::Close);
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
        let mut buffer = ReadBuf::new(&mut scratch.input[kept..]);
        let received = match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
            Poll::Ready(Ok(())) => buffer.filled().len(),
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
        SockRef::from(&self.stream)
            .peek(&mut byte)
            .is_ok_and(|bytes| bytes > 0)
    }

    /// Answers the complete requests among the first `filled` bytes of the input and writes the answers.
    fn answer(
        &mut self,
        worker: &Worker,
        scratch: &mut Scratch,
        filled: usize,
        mut loaded: Option<Hit>,
    ) {
        let now = worker.clock.now();
        scratch.heads.refresh(now);
        scratch.output.clear();
        let mut done = 0;
        self.next = loop {
            if done == filled {
                break Next::Read;
            }
            let get = match read_request(&scratch.input[done..filled]) {
                Asked::Plain(get) => get,
                Asked::Partial => break Next::Read,
                Asked::Other => break Next::HandOver,
                Asked::Refused(refusal) => {
                    let word = LastWord::Refused(refusal);
                    word.write(&mut scratch.output, now);
                    worker.metrics.cut(word.reason());
                    break Next::Linger;
                }
            };
            let hit = match loaded.take() {
                Some(hit) => {
                    worker.tally.loaded();
                    hit
                }
                None => match worker.resolver.cached(link(get.key), now) {
                    Some(hit) => {
                        worker.tally.hit();
                        hit
                    }
                    None => break missing(get.key),
                },
            };
            done += get.bytes;
            let persistence = match get.persistence {
                // The last answer before a shutdown says so, and pipelined requests are all answered first.
                _ if worker.draining.get() && done == filled => Persistence::Close,
                persistence => persistence,
            };
            scratch.heads.start(&mut scratch.output, &hit, now);
            let query = get.query.filter(|_| hit.forward_query());
            location(&mut scratch.output, hit.location_bytes(), query);
            finish(&mut scratch.output, persistence);
            if persistence == Persistence::Close {
                break if done == filled {
                    Next::Close
                } else {
                    Next::Linger
                };
            }
            if scratch.output.len() >= OUTPUT_BYTES_MAX {
                break Next::Answer(None);
            }
        };
        self.keep(&scratch.input[done..filled], done > 0);
        self.send(&scratch.output);
    }

    /// Keeps the bytes that are not answered yet and starts the time for what is awaited now.
    fn keep(&mut self, rest: &[u8], progressed: bool) {
        if rest.is_empty() {
            if self.carry.capacity() > 0 {
                self.carry = Vec::new();
            }
            self.slot.enter(Phase::Idle);
            return;
        }
        self.carry.clear();
        self.carry.extend_from_slice(rest);
        if progressed || self.slot.phase() != Phase::Head {
            self.slot.enter(Phase::Head);
        }
    }

    fn send(&mut self, output: &[u8]) {
        if output.is_empty() {
            return;
        }
        let sent = match self.stream.try_write(output) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(_) => {
                self.next = Next::Close;
                return;
            }
        };
        if sent < output.len() {
            self.unsent = output[sent..].to_vec();
            self.unsent_from = 0;
            self.slot.enter(Phase::Writing);
        }
    }

    /// Sends what the socket did not take before. Nothing is read in the meantime, so that a client that does not
    /// read its answers cannot make them pile up.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        while self.unsent_from < self.unsent.len() {
            if ready!(self.stream.poll_write_ready(cx)).is_err() {
                return Poll::Ready(Err(Ended));
            }
            match self.stream.try_write(&self.unsent[self.unsent_from..]) {
                Ok(sent) => self.unsent_from += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Poll::Ready(Err(Ended)),
            }
        }
        self.unsent = Vec::new();
        let phase = if self.carry.is_empty() {
            Phase::Idle
        } else {
            Phase::Head
        };
        self.slot.enter(phase);
        Poll::Ready(Ok(()))
    }

    fn hand_over(self, worker: &Worker) {
        if let Ok(stream) = self.stream.into_std() {
            worker.hand_over(HandedOver {
                stream,
                peer: self.peer,
                prefix: self.carry,
                permit: self.permit,
            });
        }
    }

    async fn linger(mut self) {
        self.slot.enter(Phase::Elsewhere);
        linger(&mut self.stream).await;
    }

    fn cut(self, worker: &Worker, reason: CutReason) {
        worker.metrics.cut(reason);
        if reason == CutReason::HeaderTimeout {
            let mut word = Vec::new();
            LastWord::HeaderTimeout.write(&mut word, worker.clock.now());
            if let Err(error) = self.stream.try_write(&word) {
                tracing::trace!(%error, "a slow client did not take its last answer");
            }
        }
    }
}

/// The other side is gone, or has said that it is done.
struct Ended;

/// What to do about a key of which there is no copy. Names of routes are never links, so the store is not asked.
fn missing(key: &str) -> Next {
    match Key::parse(key) {
        Ok(key) if !is_reserved(key.as_str()) => Next::Load(key),
        _ => Next::HandOver,
    }
}
