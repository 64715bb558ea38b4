//! A server on a free port, over links in memory.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path};
use axum::http::StatusCode;
use axum::routing::{get, post};
use curt_core::ports::LinkStore;
use curt_core::{Clock, Link, RedirectStatus, SystemClock, Target, UnixMillis};
use curt_http::metrics::{CutLabels, CutReason};
use curt_http::server::{DrainReport, Server};
use curt_http::{HttpMetrics, HttpSettings, ProxyProtocol, ServerSettings};
use curt_links::{ResolveMetrics, Resolver, ResolverSettings};
use curt_memory::MemoryLinkStore;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Links of every test: a plain one, one per status, and one that forwards the query.
pub(crate) const LINKS: [(&str, &str, RedirectStatus, bool); 6] = [
    (
        "plain",
        "https://example.com/plain",
        RedirectStatus::Found,
        false,
    ),
    (
        "moved",
        "https://example.com/moved",
        RedirectStatus::MovedPermanently,
        false,
    ),
    (
        "temporary",
        "https://example.com/t",
        RedirectStatus::TemporaryRedirect,
        false,
    ),
    (
        "permanent",
        "https://example.com/p",
        RedirectStatus::PermanentRedirect,
        false,
    ),
    (
        "forward",
        "https://example.com/f?own=1#part",
        RedirectStatus::Found,
        true,
    ),
    (
        "Case-Sensitive_1.x",
        "https://example.com/case",
        RedirectStatus::Found,
        false,
    ),
];

pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    pub(crate) metrics: HttpMetrics,
    pub(crate) store: Arc<MemoryLinkStore>,
    /// Requests to `/api/hold` and to the key `held` wait until the test adds a permit.
    pub(crate) gate: Arc<Semaphore>,
    stop: CancellationToken,
    /// Listens, and nobody answers yet.
    server: Option<Server>,
    running: Option<JoinHandle<std::io::Result<DrainReport>>>,
    runtime: Runtime,
}

impl Host {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(adjust: impl FnOnce(&mut ServerSettings)) -> Self {
        Self::with_clock(adjust, Arc::new(SystemClock))
    }

    pub(crate) fn with_clock(
        adjust: impl FnOnce(&mut ServerSettings),
        clock: Arc<dyn Clock>,
    ) -> Self {
        let mut host = Self::bound(adjust, clock);
        host.run();
        host
    }

    /// A server behind proxies of this machine, which speak the PROXY protocol.
    pub(crate) fn behind_proxies(trusted: &str, adjust: impl FnOnce(&mut ServerSettings)) -> Self {
        let trusted = trusted.parse().unwrap();
        let adjust = |settings: &mut HttpSettings| {
            settings.api.trusted_proxies = vec![trusted];
            settings.server.proxy_protocol = ProxyProtocol::V1V2;
            adjust(&mut settings.server);
        };
        let mut host = Self::bound_by(adjust, Arc::new(SystemClock));
        host.run();
        host
    }

    /// A server that listens and does not run yet.
    pub(crate) fn bound(adjust: impl FnOnce(&mut ServerSettings), clock: Arc<dyn Clock>) -> Self {
        Self::bound_by(|settings| adjust(&mut settings.server), clock)
    }

    fn bound_by(adjust: impl FnOnce(&mut HttpSettings), clock: Arc<dyn Clock>) -> Self {
        let runtime = Runtime::new().unwrap();
        let store = Arc::new(MemoryLinkStore::new());
        let resolver = Resolver::new(
            ResolverSettings::default(),
            store.clone(),
            Arc::default(),
            Arc::clone(&clock),
            ResolveMetrics::default(),
        );
        let mut settings = HttpSettings::default();
        settings.server.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        settings.server.workers = 2;
        // Every client of these tests has the same address.
        settings.server.connections_per_address = Some(usize::MAX);
        adjust(&mut settings);
        let metrics = HttpMetrics::unregistered();
        let gate = Arc::new(Semaphore::new(0));
        let router = router(Arc::clone(&gate));
        let server = Server::bind(&settings, resolver, clock, metrics.clone(), router).unwrap();
        let host = Self {
            address: server.local_addr(),
            metrics,
            store,
            gate,
            stop: CancellationToken::new(),
            server: Some(server),
            running: None,
            runtime,
        };
        for (key, target, status, forward_query) in LINKS {
            host.add(key, target, status, forward_query);
        }
        host
    }

    pub(crate) fn run(&mut self) {
        let server = self.server.take().unwrap();
        let running = self.runtime.spawn(server.run(self.stop.clone()));
        self.running = Some(running);
    }

    pub(crate) fn add(&self, key: &str, target: &str, status: RedirectStatus, forward_query: bool) {
        self.insert(link(key, target, status, forward_query));
    }

    /// Adds a permanent link that expires at `expires_at`.
    pub(crate) fn add_until(&self, key: &str, expires_at: UnixMillis) {
        let mut link = link(
            key,
            "https://example.com/",
            RedirectStatus::PermanentRedirect,
            false,
        );
        link.expires_at = Some(expires_at);
        self.insert(link);
    }

    fn insert(&self, link: Link) {
        let insert = self.store.insert_if_absent(vec![link], None);
        self.runtime.block_on(insert).unwrap();
    }

    pub(crate) fn cut(&self, reason: CutReason) -> u64 {
        let labels = CutLabels { reason };
        self.metrics.connections_cut.get_or_create(&labels).get()
    }

    /// Asks the server to stop, without waiting for it.
    pub(crate) fn begin_stop(&self) {
        self.stop.cancel();
    }

    /// Stops the server and returns how it ended.
    pub(crate) fn stopped(mut self) -> DrainReport {
        self.stop.cancel();
        let running = self.running.take().unwrap();
        self.runtime.block_on(running).unwrap().unwrap()
    }
}

/// Stands for the API: enough to see that requests arrive whole and in order.
fn router(gate: Arc<Semaphore>) -> Router {
    let hold = move || async move {
        gate.acquire().await.unwrap().forget();
        "held"
    };
    Router::new()
        .route("/", get(|| async { "home" }))
        .route("/api/echo", post(|body: Bytes| async move { body }))
        .route(
            "/api/name/{name}",
            get(|Path(name): Path<String>| async move { name }),
        )
        .route(
            "/api/peer",
            get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() }),
        )
        .route("/api/big", get(|| async { "x".repeat(4 * 1_024 * 1_024) }))
        .route("/api/hold", get(hold.clone()))
        .route("/held", get(hold))
        .fallback(|| async { (StatusCode::NOT_FOUND, "nothing here") })
}

fn link(key: &str, target: &str, status: RedirectStatus, forward_query: bool) -> Link {
    Link {
        target: Target::from_serialised(target).unwrap(),
        status,
        forward_query,
        ..curt_testkit::sample::alias(key)
    }
}

/// Short enough for a test, long enough for a busy machine.
pub(crate) fn impatient(settings: &mut ServerSettings) {
    settings.header_timeout = Duration::from_millis(300);
    settings.idle_timeout = Duration::from_millis(900);
    settings.body_timeout = Duration::from_millis(300);
    settings.write_timeout = Duration::from_millis(300);
}
