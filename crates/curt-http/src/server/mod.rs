//! The server: threads that redirect, and hyper for the rest.
//!
//! ```text
//!  listener ─► worker 0 ─┬─ GET|HEAD /{key}, live link ─► answered on the spot
//!  (SO_REUSEPORT)        ├─ GET|HEAD /{key}, no live link ─► request + resolution ─► router ─► response to worker 0
//!                        └─ anything else ─► socket + bytes read ─► hyper + router, on the caller's runtime
//!  listener ─► worker 1 ─ …
//! ```
//! Each worker is a thread with its own listener and its own runtime, and shares with the others only the link cache.
//! A connection that was handed over stays with hyper. Timeouts and limits are the same on both sides: see
//! [`ServerSettings`].

mod chunk_scanner;
pub(crate) mod final_response;
mod general;
pub(crate) mod handoff;
pub(crate) mod limit;
pub(crate) mod linger;
mod listener;
mod loop_lag;
mod phase_deadline;
pub(crate) mod proxy_header;
mod request_reader;
mod router_server;
pub(crate) mod stop;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use axum::Router;
use curt_accounts::Limits;
use curt_clicks::capture::Capture;
use curt_core::Clock;
use curt_core::names::event;
use curt_links::Resolver;
use ipnet::IpNet;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::general::General;
pub use self::general::Stopping;
use self::handoff::Handoff;
use self::limit::ConnectionLimit;
pub use self::listener::{bind_alone, probe};
pub use self::loop_lag::LoopLag;
pub use self::router_server::RouterServer;
use self::stop::StopSteps;
use crate::access_log::AccessLog;
use crate::metrics::{CutReason, HttpMetrics};
use crate::redirect::RedirectFields;
use crate::redirect::fast::{self, WorkerParts};
use crate::settings::{HttpSettings, ServerSettings};

/// A server whose sockets are bound and which serves nobody yet.
pub struct Server {
    settings: Arc<ServerSettings>,
    fields: RedirectFields,
    listeners: Vec<TcpListener>,
    address: SocketAddr,
    resolver: Arc<Resolver>,
    clock: Arc<dyn Clock>,
    metrics: HttpMetrics,
    router: Router,
    trusted_proxies: Arc<[IpNet]>,
    captures: Vec<Capture>,
    account_limits: Option<Arc<Limits>>,
    access_log: Option<Arc<AccessLog>>,
    loop_lag: Option<Arc<LoopLag>>,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainReport {
    /// Connections that still owed an answer when the grace period was over.
    pub cut: usize,
}

impl Server {
    /// Binds every listener. `router` serves whatever is not a plain redirect.
    pub fn bind(
        settings: &HttpSettings,
        resolver: Arc<Resolver>,
        clock: Arc<dyn Clock>,
        metrics: HttpMetrics,
        router: Router,
    ) -> io::Result<Self> {
        let server = &settings.server;
        let listeners = listener::bind_all(server.listen, server.workers.max(1))?;
        let address = listeners
            .first()
            .map_or(Ok(server.listen), TcpListener::local_addr)?;
        Ok(Self {
            settings: Arc::new(server.clone()),
            fields: RedirectFields::new(settings),
            listeners,
            address,
            resolver,
            clock,
            metrics,
            router,
            trusted_proxies: settings.api.trusted_proxies.as_slice().into(),
            captures: Vec::new(),
            account_limits: None,
            access_log: None,
            loop_lag: None,
        })
    }

    /// Gives each worker its own click writer; workers without one record nothing.
    #[must_use]
    pub fn with_captures(mut self, captures: Vec<Capture>) -> Self {
        self.captures = captures;
        self
    }

    /// Passes visitors who have tried too many keys on to the router, which refuses them whatever their key.
    #[must_use]
    pub fn with_limits(mut self, limits: Arc<Limits>) -> Self {
        self.account_limits = Some(limits);
        self
    }

    /// Has the workers log redirects; the router logs what it answers itself.
    #[must_use]
    pub fn with_access_log(mut self, log: Option<Arc<AccessLog>>) -> Self {
        self.access_log = log;
        self
    }

    /// Has each worker note how late its event loop is, as the loop with the worker's number.
    #[must_use]
    pub fn with_loop_lag(mut self, lag: Option<Arc<LoopLag>>) -> Self {
        self.loop_lag = lag;
        self
    }

    /// The address that clients reach, with the real port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`; then goes on for the drain delay with answers that close their connections, accepts no more,
    /// closes idle connections, and lets requests under way finish within the grace period. The router runs on the runtime that this is called on. An error means that a worker could
    /// not start or died; the others are stopped first.
    pub async fn run(self, stop: CancellationToken) -> io::Result<DrainReport> {
        let steps = StopSteps::new(&stop);
        let (handoffs, handed) = handoff::channel();
        let tracker = TaskTracker::new();
        let general = General {
            router: self.router,
            settings: Arc::clone(&self.settings),
            metrics: self.metrics.clone(),
            steps: steps.clone(),
        };
        #[expect(clippy::disallowed_methods, reason = "the server waits for it")]
        let receiver = tokio::spawn(take_handoffs(handed, general, tracker.clone()));
        let limit = ConnectionLimit::new(
            self.settings.connections_max,
            self.metrics.connections.clone(),
        );
        let limit = Arc::new(limit.share(
            self.settings.connections_per_address(),
            Arc::clone(&self.trusted_proxies),
        ));
        let mut ends = Vec::new();
        let mut captures = self.captures.into_iter();
        for (number, listener) in self.listeners.into_iter().enumerate() {
            let parts = WorkerParts {
                settings: ServerSettings::clone(&self.settings),
                listener,
                resolver: Arc::clone(&self.resolver),
                clock: Arc::clone(&self.clock),
                fields: self.fields.clone(),
                metrics: self.metrics.clone(),
                limit: Arc::clone(&limit),
                handoffs: handoffs.clone(),
                trusted_proxies: Arc::clone(&self.trusted_proxies),
                capture: captures.next(),
                account_limits: self.account_limits.clone(),
                access_log: self.access_log.clone(),
                loop_lag: self.loop_lag.clone().map(|lag| (lag, number)),
            };
            ends.push(start_worker(number, parts, steps.clone()));
        }
        drop(handoffs);
        steps.run(self.settings.drain_delay, &limit).await;
        let deadline = Instant::now() + self.settings.shutdown_grace;
        let ended = join_workers(ends).await;
        let failed = receiver.await.is_err();
        tracker.close();
        let drained = tokio::time::timeout_at(deadline, tracker.wait()).await;
        let still_open = if drained.is_ok() { 0 } else { tracker.len() };
        for _ in 0..still_open {
            self.metrics.cut(CutReason::Shutdown);
        }
        let cut = ended? + still_open;
        if failed {
            return Err(io::Error::other("the take-over of connections failed"));
        }
        Ok(DrainReport { cut })
    }
}

/// Serves what workers pass on until no worker is left.
async fn take_handoffs(
    mut handed: mpsc::Receiver<Handoff>,
    general: General,
    tracker: TaskTracker,
) {
    // Their connections are with the workers, which count and await them.
    let requests = TaskTracker::new();
    while let Some(handoff) = handed.recv().await {
        match handoff {
            Handoff::Connection(handed) => tracker.spawn(general.clone().serve(handed)),
            Handoff::Request(request) => requests.spawn(request.serve(general.router.clone())),
        };
    }
}

type WorkerResult = oneshot::Receiver<io::Result<usize>>;

/// Starts one worker thread. If it ends for whatever reason, everything stops: a server that quietly lost a thread
/// would leave its share of the connections unanswered.
fn start_worker(number: usize, parts: WorkerParts, steps: StopSteps) -> WorkerResult {
    let (sender, receiver) = oneshot::channel();
    let ended = steps.answers_close.clone();
    let body = move || {
        let _guard = ended.drop_guard();
        let result = fast::run(parts, &steps);
        if let Err(error) = &result {
            tracing::error!(event = event::TASK_FAILED, %error, worker = number, "a worker failed");
        }
        if sender.send(result).is_err() {
            tracing::debug!(worker = number, "worker result not awaited");
        }
    };
    let spawned = thread::Builder::new()
        .name(format!("curt-redirect-{number}"))
        .spawn(body);
    if let Err(error) = spawned {
        // The closure and its guard are dropped with the failure, which stops the other workers.
        tracing::error!(event = event::TASK_FAILED, %error, worker = number, "a worker thread could not start");
    }
    receiver
}

/// Connections cut by all workers together.
async fn join_workers(ends: Vec<WorkerResult>) -> io::Result<usize> {
    let mut cut = 0;
    let mut failure = None;
    for end in ends {
        match end.await {
            Ok(Ok(count)) => cut += count,
            Ok(Err(error)) => failure = Some(error),
            Err(_) => failure = Some(io::Error::other("a worker thread died")),
        }
    }
    failure.map_or(Ok(cut), Err)
}
