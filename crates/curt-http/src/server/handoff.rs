//! What a worker passes on to the router: connections, and requests without their connection.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use curt_core::UnixMillis;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::final_response::FinalResponse;
use super::limit::Permit;
use crate::metrics::{CutReason, HttpMetrics};
use crate::redirect::fast::RoutedRequest;

/// Handoffs that wait to be taken.
const WAITING_MAX: usize = 1_024;

/// A socket, and the bytes that were read from it and not answered.
#[derive(Debug)]
pub(crate) struct HandedOffConnection {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) prefix: Vec<u8>,
    pub(crate) permit: Permit,
}

#[derive(Debug)]
pub(crate) enum Handoff {
    Connection(HandedOffConnection),
    Request(RoutedRequest),
}

#[derive(Clone, Debug)]
pub(crate) struct HandoffSender(mpsc::Sender<Handoff>);

pub(crate) fn channel() -> (HandoffSender, mpsc::Receiver<Handoff>) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (HandoffSender(sender), receiver)
}

impl HandoffSender {
    /// Passes the connection on; if too many wait already, its client is told to come again.
    pub(crate) fn send(&self, handed: HandedOffConnection, metrics: &HttpMetrics, now: UnixMillis) {
        let Err(TrySendError::Full(handoff) | TrySendError::Closed(handoff)) =
            self.0.try_send(Handoff::Connection(handed))
        else {
            return;
        };
        metrics.cut(CutReason::Overload);
        if let Handoff::Connection(handed) = handoff {
            refuse_connection(
                &handed.stream,
                FinalResponse::Busy(CutReason::Overload),
                now,
            );
        }
    }

    /// Passes a request on; false if too many wait already.
    pub(crate) fn send_request(&self, request: RoutedRequest) -> bool {
        self.0.try_send(Handoff::Request(request)).is_ok()
    }
}

/// Says why and closes. The socket's buffer is empty, so the few bytes are taken at once or never.
pub(crate) fn refuse_connection(mut stream: &TcpStream, word: FinalResponse, now: UnixMillis) {
    let mut bytes = Vec::new();
    word.write(&mut bytes, now);
    if let Err(error) = stream.write_all(&bytes) {
        tracing::trace!(%error, "client gone before refusal");
    }
}
