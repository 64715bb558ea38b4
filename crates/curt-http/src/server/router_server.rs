//! A server that only has a router: the administration port.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use curt_core::names::event;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::DrainReport;
use super::general::General;
use super::handoff::HandedOffConnection;
use super::limit::ConnectionLimit;
use super::listener;
use super::stop::StopSteps;
use crate::metrics::HttpMetrics;
use crate::settings::ServerSettings;

/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves a router on a port of its own, with the timeouts and limits of the main one.
pub struct RouterServer {
    settings: Arc<ServerSettings>,
    listener: TcpListener,
    address: SocketAddr,
    metrics: HttpMetrics,
    router: Router,
}

impl RouterServer {
    pub fn bind(
        address: SocketAddr,
        settings: &ServerSettings,
        metrics: HttpMetrics,
        router: Router,
    ) -> io::Result<Self> {
        let listener = listener::bind_alone(address)?;
        let address = listener.local_addr()?;
        Ok(Self {
            settings: Arc::new(settings.clone()),
            listener,
            address,
            metrics,
            router,
        })
    }

    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`, then as [`Server::run`](super::Server::run).
    pub async fn run(self, stop: CancellationToken) -> io::Result<DrainReport> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let connections_max = self.settings.admin_connections_max();
        let limit = ConnectionLimit::new(connections_max, self.metrics.connections.clone());
        let limit = Arc::new(limit);
        let grace = self.settings.shutdown_grace;
        let general = General {
            router: self.router,
            settings: self.settings,
            metrics: self.metrics,
            steps: StopSteps::at_once(&stop),
        };
        let tracker = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                biased;
                accepted = listener.accept() => accepted,
                () = stop.cancelled() => break,
            };
            match accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer))) {
                Ok((stream, peer)) => match limit.admit(peer.ip()) {
                    Ok(permit) => {
                        let handed = HandedOffConnection {
                            stream,
                            peer,
                            prefix: Vec::new(),
                            permit,
                        };
                        tracker.spawn(general.clone().serve(handed));
                    }
                    Err(reason) => general.metrics.cut(reason),
                },
                Err(error) => {
                    tracing::warn!(event = event::CONNECTION_FAILED, %error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        tracker.close();
        let deadline = Instant::now() + grace;
        let drained = tokio::time::timeout_at(deadline, tracker.wait()).await;
        let cut = if drained.is_ok() { 0 } else { tracker.len() };
        Ok(DrainReport { cut })
    }
}
