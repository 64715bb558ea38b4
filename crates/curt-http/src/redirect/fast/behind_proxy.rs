//! A connection from a proxy that tells, before everything else, whose requests follow.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::net::TcpStream;

use super::connection;
use super::slots::{Phase, SlotGuard};
use super::worker::Worker;
use crate::metrics::CutReason;
use crate::server::final_response::FinalResponse;
use crate::server::limit::Permit;
use crate::server::linger::linger;
use crate::server::proxy_header::{PROXY_HEADER_BYTES_MAX, ProxyHeader, read_proxy_header};

/// What is read at once; the first request usually comes with the header.
const READ_BYTES: usize = 4_096;

const _: () = assert!(PROXY_HEADER_BYTES_MAX + READ_BYTES < super::worker::INPUT_BYTES);

struct ProxiedConnection {
    stream: TcpStream,
    slot: SlotGuard,
    permit: Permit,
    received: Vec<u8>,
}

/// Why a connection ends before its first request.
enum Unheard {
    Gone,
    Late(CutReason),
    Malformed,
}

/// Serves the connection of a trusted proxy: first its header, then the client's requests. It counts as open from this
/// call on.
pub(crate) fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    permit: Permit,
    worker: Rc<Worker>,
) -> impl Future<Output = ()> {
    let slot = worker.slots.take();
    // A proxy has nothing to wait for: its header has the time of a request's.
    slot.enter(Phase::Head);
    let proxied = ProxiedConnection {
        stream,
        slot,
        permit,
        received: Vec::new(),
    };
    proxied.serve(peer, worker)
}

impl ProxiedConnection {
    async fn serve(mut self, peer: SocketAddr, worker: Rc<Worker>) {
        let header = poll_fn(|cx| self.poll_header(cx, &worker)).await;
        let client = match header {
            Ok(client) => client,
            Err(Unheard::Gone) => return,
            Err(Unheard::Late(reason)) => return worker.metrics.cut(reason),
            Err(Unheard::Malformed) => {
                return self.refuse(&worker, FinalResponse::NoProxyHeader).await;
            }
        };
        if let Some(client) = client
            && let Err(reason) = self.permit.count_client(client.ip())
        {
            return self.refuse(&worker, FinalResponse::Busy(reason)).await;
        }
        let peer = client.unwrap_or(peer);
        let Self {
            stream,
            slot,
            permit,
            received,
        } = self;
        connection::resume(stream, peer, (permit, slot), received, worker).await;
    }

    /// Ready with the client when the header is complete; what follows it is left in `received`.
    fn poll_header(
        &mut self,
        cx: &mut Context<'_>,
        worker: &Worker,
    ) -> Poll<Result<Option<SocketAddr>, Unheard>> {
        self.slot.remember(cx.waker());
        if let Some(reason) = self.slot.expired() {
            return Poll::Ready(Err(Unheard::Late(reason)));
        }
        loop {
            match self.poll_read(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(Err(Unheard::Gone)),
                Poll::Pending if worker.draining.get() && self.received.is_empty() => {
                    return Poll::Ready(Err(Unheard::Gone));
                }
                Poll::Pending => return Poll::Pending,
            }
            match read_proxy_header(&self.received) {
                ProxyHeader::Partial => {}
                ProxyHeader::Malformed => return Poll::Ready(Err(Unheard::Malformed)),
                ProxyHeader::Complete { client, bytes } => {
                    self.received.drain(..bytes);
                    return Poll::Ready(Ok(client));
                }
            }
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut buffer = [0; READ_BYTES];
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(&mut buffer) {
                Ok(bytes) => {
                    self.received.extend_from_slice(&buffer[..bytes]);
                    return Poll::Ready(Ok(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    async fn refuse(mut self, worker: &Worker, word: FinalResponse) {
        worker.metrics.cut(word.reason());
        self.slot.enter(Phase::Elsewhere);
        let mut bytes = Vec::new();
        word.write(&mut bytes, worker.clock.now());
        if let Err(error) = self.stream.try_write(&bytes) {
            tracing::trace!(%error, "final response not taken");
        }
        linger(&mut self.stream).await;
    }
}
