//! The input of a connection that hyper serves, request by request.
//!
//! hyper keeps only what it needs of a head: of a repeated `Content-Length` it shows one, and of one beside
//! `Transfer-Encoding` none. Rules about that must be asked before. So every head is read here first, by the function
//! that the redirect path reads heads with, and passed on when it keeps the rules: a request gets the same answer
//! whether it is the first of its connection or a later one.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use curt_core::limits::HTTP_HEAD_BYTES_MAX;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;

use super::chunk_scanner::{ChunkScanner, Scanned};
use super::phase_deadline::PhaseDeadline;
use crate::redirect::{BodyFraming, Framed, Refusal, RequestFrame, encode_query, frame_request};

/// Bytes of one read.
const READ_BYTES: usize = 8 * 1_024;

/// Where the reader tells why it passes nothing on any more.
pub(super) type SharedRefusal = Arc<OnceLock<Refusal>>;

pub(super) struct RequestReader {
    /// Received and not passed on.
    input: BytesMut,
    /// A head that may be passed on.
    head: Bytes,
    next: Expected,
    refusal: SharedRefusal,
}

/// What the next byte of the input belongs to.
enum Expected {
    Head,
    /// A body with so many bytes to come.
    Body(u64),
    Chunks(ChunkScanner),
    /// Nothing: a body that broke off has no known end.
    End,
}

impl RequestReader {
    /// Begins with the bytes that were read elsewhere.
    pub(super) fn new(prefix: &[u8], refusal: SharedRefusal) -> Self {
        Self {
            input: BytesMut::from(prefix),
            head: Bytes::new(),
            next: Expected::Head,
            refusal,
        }
    }

    /// Reads as [`AsyncRead`] does, never past the end of a head that was not checked. After a refusal nothing comes
    /// any more, not even the end: the connection's task ends it when it owes no answer.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut TcpStream,
        phase_deadline: &PhaseDeadline,
        output: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.refusal.get().is_some() {
            return Poll::Pending;
        }
        loop {
            if self.pass_on(phase_deadline, output) {
                return Poll::Ready(Ok(()));
            }
            if self.refusal.get().is_some() {
                return Poll::Pending;
            }
            let mut bytes = [0; READ_BYTES];
            let most = match self.next {
                // Not a byte more, so that the rest stays in the socket and not in our memory.
                Expected::Body(left) => usize::try_from(left).unwrap_or(READ_BYTES).min(READ_BYTES),
                Expected::End => return Poll::Ready(Ok(())),
                Expected::Head | Expected::Chunks(_) => READ_BYTES,
            };
            let mut buffer = ReadBuf::new(&mut bytes[..most]);
            ready!(Pin::new(&mut *stream).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.input.extend_from_slice(buffer.filled());
        }
    }

    /// Writes what may be passed on, and says whether there was anything.
    fn pass_on(&mut self, phase_deadline: &PhaseDeadline, output: &mut ReadBuf<'_>) -> bool {
        if self.head.is_empty() && !self.input.is_empty() {
            phase_deadline.note_head_bytes();
            if matches!(self.next, Expected::Head) {
                self.check_head();
            }
        }
        if self.head.has_remaining() {
            let bytes = self.head.len().min(output.remaining());
            output.put_slice(&self.head.split_to(bytes));
            if self.head.is_empty() {
                self.head = Bytes::new();
            }
            return bytes > 0;
        }
        let most = self.input.len().min(output.remaining());
        let bytes = match &mut self.next {
            Expected::Head | Expected::End => return false,
            Expected::Body(left) => {
                let bytes = usize::try_from(*left).unwrap_or(usize::MAX).min(most);
                *left -= bytes as u64;
                if *left == 0 {
                    self.next = Expected::Head;
                }
                bytes
            }
            Expected::Chunks(scanner) => match scanner.scan(&self.input[..most]) {
                Scanned::All => most,
                Scanned::End(bytes) => {
                    self.next = Expected::Head;
                    bytes
                }
                Scanned::Broken(bytes) => {
                    self.next = Expected::End;
                    bytes
                }
            },
        };
        output.put_slice(&self.input[..bytes]);
        self.drop_input(bytes);
        bytes > 0
    }

    fn check_head(&mut self) {
        match frame_request(&self.input) {
            Framed::Partial => {}
            Framed::Complete(frame) => match passed_head(&self.input[..frame.bytes], &frame) {
                Some(head) => {
                    self.head = head;
                    self.next = match frame.body {
                        BodyFraming::None | BodyFraming::Length(0) => Expected::Head,
                        BodyFraming::Length(length) => Expected::Body(length),
                        BodyFraming::Chunked => Expected::Chunks(ChunkScanner::new()),
                    };
                    self.drop_input(frame.bytes);
                }
                None => self.refuse(Refusal::UriTooLong),
            },
            Framed::Refused(refusal) => self.refuse(refusal),
        }
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.refusal.get_or_init(|| refusal);
    }

    /// An idle connection owns no buffer.
    fn drop_input(&mut self, bytes: usize) {
        self.input.advance(bytes);
        if self.input.is_empty() {
            self.input = BytesMut::new();
        }
    }
}

/// The head as hyper takes it: what browsers write into a query and hyper refuses is percent-encoded. `None`: that makes
/// it too long.
fn passed_head(head: &[u8], frame: &RequestFrame) -> Option<Bytes> {
    let target = &head[frame.target.clone()];
    let Some(encoded) = encode_query(target) else {
        return Some(Bytes::copy_from_slice(head));
    };
    let whole = [
        &head[..frame.target.start],
        &encoded,
        &head[frame.target.end..],
    ]
    .concat();
    (whole.len() <= HTTP_HEAD_BYTES_MAX).then(|| Bytes::from(whole))
}
