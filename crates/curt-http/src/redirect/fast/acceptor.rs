//! From a listener to connections.

use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use curt_core::names::event;
use tokio::net::TcpStream;

use super::worker::Worker;
use super::{behind_proxy, connection};
use crate::server::final_response::FinalResponse;
use crate::server::handoff::refuse_connection;
use crate::server::limit::ConnectionLimit;

/// Pause after a failed accept. Out of file descriptors, the next try would fail as well.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Of failed accepts in a row, one in this many is logged: about one a second.
const ACCEPT_FAILURES_PER_LOG: u32 = 20;

/// A connection that is ready to be accepted, or nothing.
pub(super) fn accept_now(listener: &TcpListener) -> Option<(std::net::TcpStream, SocketAddr)> {
    loop {
        match listener.accept() {
            Ok((stream, peer)) => {
                stream.set_nonblocking(true).ok()?;
                return Some((stream, peer));
            }
            Err(error) if is_of_one_client(&error) => {}
            Err(_) => return None,
        }
    }
}

/// Lets clients in, or tells them why not.
pub(super) struct Acceptor<'a> {
    worker: &'a Rc<Worker>,
    limit: &'a Arc<ConnectionLimit>,
    /// Failed accepts since the last good one.
    failures: Cell<u32>,
}

impl<'a> Acceptor<'a> {
    pub(super) fn new(worker: &'a Rc<Worker>, limit: &'a Arc<ConnectionLimit>) -> Self {
        Self {
            worker,
            limit,
            failures: Cell::new(0),
        }
    }

    pub(super) async fn take(&self, accepted: io::Result<(TcpStream, SocketAddr)>) {
        match accepted {
            Ok((stream, peer)) => {
                self.failures.set(0);
                self.admit(stream, peer);
            }
            Err(error) if is_of_one_client(&error) => {}
            Err(error) => {
                let failures = self.failures.get();
                self.failures.set(failures.wrapping_add(1));
                if failures.is_multiple_of(ACCEPT_FAILURES_PER_LOG) {
                    tracing::warn!(event = event::CONNECTION_FAILED, %error, failures, "accept failed");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    fn admit(&self, stream: TcpStream, peer: SocketAddr) {
        let worker = self.worker;
        let reason = match self.limit.admit(peer.ip()) {
            Ok(permit) => {
                let trust = worker.proxy_trust.as_ref();
                if trust.is_some_and(|trust| trust.expects_header(peer.ip())) {
                    let serve = behind_proxy::serve(stream, peer, permit, Rc::clone(worker));
                    tokio::task::spawn_local(serve);
                } else {
                    let serve = connection::serve(stream, peer, permit, Rc::clone(worker));
                    tokio::task::spawn_local(serve);
                }
                return;
            }
            Err(reason) => reason,
        };
        worker.metrics.cut(reason);
        if let Ok(stream) = stream.into_std() {
            refuse_connection(&stream, FinalResponse::Busy(reason), worker.clock.now());
        }
    }
}

/// Whether the failure says nothing about the next client.
fn is_of_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}
