//! Connections that hyper serves with the router: everything that is not a plain redirect.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use bytes::Bytes;
use curt_core::limits::{HTTP_HEAD_BYTES_MAX, HTTP_HEADERS_MAX};
use curt_core::{Clock, SystemClock};
use http::header::CONNECTION;
use http::{HeaderValue, Request};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::final_response::FinalResponse;
use super::handoff::HandedOffConnection;
use super::linger::linger;
use super::phase_deadline::PhaseDeadline;
use super::request_reader::{RequestReader, SharedRefusal};
use super::stop::StopSteps;
use crate::body_budget::HeldByAnswer;
use crate::metrics::{CutReason, HttpMetrics};
use crate::redirect::Refusal;
use crate::settings::ServerSettings;

/// Goes with every request: an answer without an end, such as a feed, must end when the server stops.
#[derive(Clone, Debug, Default)]
pub struct Stopping(pub CancellationToken);

/// What all connections of one router share.
#[derive(Clone)]
pub(super) struct General {
    pub(super) router: Router,
    pub(super) settings: Arc<ServerSettings>,
    pub(super) metrics: HttpMetrics,
    pub(super) steps: StopSteps,
}

impl General {
    /// Serves one connection until it is closed by either side.
    pub(super) async fn serve(self, handed: HandedOffConnection) {
        let HandedOffConnection {
            stream,
            peer,
            prefix,
            permit: _permit,
        } = handed;
        let stream = match TcpStream::from_std(stream) {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(%error, "handoff failed");
                return;
            }
        };
        let phase_deadline = Arc::new(PhaseDeadline::new(&self.settings));
        let refusal = SharedRefusal::default();
        let socket = Socket {
            stream,
            requests: RequestReader::new(&prefix, Arc::clone(&refusal)),
            phase_deadline: Arc::clone(&phase_deadline),
        };
        drop(prefix);
        let service = {
            let (router, phase_deadline) = (self.router.clone(), Arc::clone(&phase_deadline));
            let answers_close = self.steps.answers_close.clone();
            service_fn(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(ConnectInfo(peer));
                let stopping = Stopping(answers_close.clone());
                request.extensions_mut().insert(stopping.clone());
                Box::pin(route(
                    router.clone(),
                    Arc::clone(&phase_deadline),
                    stopping,
                    request,
                ))
            })
        };
        let mut connection = builder().serve_connection(TokioIo::new(socket), service);
        let mut stopping = false;
        loop {
            tokio::select! {
                // The connection first: one that is handed over while the server stops has a request to be read, and
                // hyper would take it for idle.
                biased;
                ended = &mut connection => {
                    let refused = ended.is_err_and(|error| error.is_parse());
                    let socket = connection.into_parts().io.into_inner();
                    return socket.close(refused || !stopping).await;
                }
                refusal = refused(&refusal, &phase_deadline) => {
                    let word = FinalResponse::Refused(refusal);
                    self.metrics.cut(word.reason());
                    let socket = connection.into_parts().io.into_inner();
                    return socket.refuse(word).await;
                }
                () = tokio::time::sleep_until(phase_deadline.next_check_at()) => {
                    if let Some(reason) = phase_deadline.expired_phase() {
                        self.metrics.cut(reason);
                        if reason == CutReason::HeaderTimeout {
                            let socket = connection.into_parts().io.into_inner();
                            socket.refuse(FinalResponse::HeaderTimeout).await;
                        }
                        return;
                    }
                }
                () = self.steps.idle_closes.cancelled(), if !stopping => {
                    stopping = true;
                    Pin::new(&mut connection).graceful_shutdown();
                }
            }
        }
    }
}

/// Waits for a head that was refused and for the answers before it. It is asked after hyper in each turn, when hyper has
/// tried to send what it has, and needs no waker of its own.
async fn refused(refusal: &SharedRefusal, phase_deadline: &PhaseDeadline) -> Refusal {
    poll_fn(|_| match refusal.get() {
        Some(refusal) if phase_deadline.owes_nothing() => Poll::Ready(*refusal),
        _ => Poll::Pending,
    })
    .await
}

fn builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .keep_alive(true)
        // `PhaseDeadline` does what the header timeout would, and more.
        .header_read_timeout(None)
        .max_headers(HTTP_HEADERS_MAX)
        // Not with `pipeline_flush`: hyper would then drop its own 4xx while unread bytes are in its buffer.
        .max_buf_size(HTTP_HEAD_BYTES_MAX);
    builder
}

async fn route(
    router: Router,
    phase_deadline: Arc<PhaseDeadline>,
    stopping: Stopping,
    request: Request<Incoming>,
) -> Result<http::Response<Answer>, Infallible> {
    phase_deadline.note_request(!request.body().is_end_stream());
    let request = request.map(|body| {
        Body::new(Arriving {
            body,
            phase_deadline: Arc::clone(&phase_deadline),
        })
    });
    let mut response = router.oneshot(request).await?;
    if stopping.0.is_cancelled() {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    phase_deadline.note_response_start();
    let held = response.extensions_mut().remove::<HeldByAnswer>();
    Ok(response.map(|body| Answer {
        body,
        phase_deadline,
        _held: held,
    }))
}

/// A request body that reports its progress.
struct Arriving {
    body: Incoming,
    phase_deadline: Arc<PhaseDeadline>,
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.phase_deadline.note_body_bytes(bytes);
                if self.body.is_end_stream() {
                    self.phase_deadline.note_response_start();
                }
            }
            Some(Err(_)) | None => self.phase_deadline.note_response_start(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A response body that reports its end, which is when hyper drops it.
struct Answer {
    body: Body,
    phase_deadline: Arc<PhaseDeadline>,
    _held: Option<HeldByAnswer>,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.phase_deadline.note_response_end();
    }
}

/// The socket, whose requests are checked before hyper reads them.
struct Socket {
    stream: TcpStream,
    requests: RequestReader,
    phase_deadline: Arc<PhaseDeadline>,
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self {
            stream,
            requests,
            phase_deadline,
        } = &mut *self;
        requests.poll_read(cx, stream, phase_deadline, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// hyper flushes its last words before it comes here; [`close`](Self::close) does the rest.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Socket {
    /// Ends the connection. A client that may still be sending, such as a body that was refused, is given time to read
    /// the answer.
    async fn close(mut self, may_be_sending: bool) {
        if may_be_sending {
            linger(&mut self.stream).await;
        } else if let Err(error) = self.stream.shutdown().await {
            tracing::trace!(%error, "client gone before close");
        }
    }

    /// Answers what is no request, and ends the connection.
    async fn refuse(mut self, word: FinalResponse) {
        let mut bytes = Vec::new();
        word.write(&mut bytes, SystemClock.now());
        // The few bytes are taken at once or never.
        if let Err(error) = self.stream.try_write(&bytes) {
            tracing::trace!(%error, "final response not taken");
        }
        linger(&mut self.stream).await;
    }

    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Pending => self.phase_deadline.note_write_blocked(),
            Poll::Ready(_) => self.phase_deadline.note_write(),
        }
        written
    }
}
