//! A thread that answers redirects: its listener, its runtime, and what its connections share.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use curt_accounts::Limits;
use curt_clicks::capture::Capture;
use curt_clicks::record::Outcome;
use curt_core::limits::HTTP_HEAD_BYTES_MAX;
use curt_core::{Clock, ServedLink, UnixMillis};
use curt_links::Resolver;
use ipnet::IpNet;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::time::Instant;

use super::acceptor::{Acceptor, accept_now};
use super::outbox::Outbox;
use super::redirect_counts::RedirectCounts;
use super::response_sender::ResponseSender;
use super::slots::Slots;
use crate::access_log::{AccessEntry, AccessLog, shortened};
use crate::caller::address;
use crate::metrics::{CutReason, HttpMetrics, RedirectOutcome};
use crate::redirect::clicks;
use crate::redirect::{PlainGet, RedirectFields, ResponseHeads};
use crate::server::LoopLag;
use crate::server::handoff::HandoffSender;
use crate::server::limit::ConnectionLimit;
use crate::server::proxy_header::ProxyTrust;
use crate::server::stop::{StopSteps, end_handshakes};
use crate::settings::{ProxyProtocol, ServerSettings};

/// One read: a full head, and room for the requests pipelined behind it.
pub(crate) const INPUT_BYTES: usize = 2 * HTTP_HEAD_BYTES_MAX;

/// What a worker needs from outside its thread.
pub(crate) struct WorkerParts {
    pub(crate) settings: ServerSettings,
    pub(crate) listener: TcpListener,
    pub(crate) resolver: Arc<Resolver>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) fields: RedirectFields,
    pub(crate) metrics: HttpMetrics,
    pub(crate) limit: Arc<ConnectionLimit>,
    pub(crate) handoffs: HandoffSender,
    pub(crate) trusted_proxies: Arc<[IpNet]>,
    pub(crate) capture: Option<Capture>,
    pub(crate) account_limits: Option<Arc<Limits>>,
    pub(crate) access_log: Option<Arc<AccessLog>>,
    /// Where to note how late this worker's event loop is, and under which number.
    pub(crate) loop_lag: Option<(Arc<LoopLag>, usize)>,
}

/// What the connections of one worker share. Nothing in it is seen by another thread.
pub(crate) struct Worker {
    pub(crate) resolver: Arc<Resolver>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: HttpMetrics,
    pub(crate) slots: Rc<Slots>,
    pub(crate) scratch: RefCell<Scratch>,
    pub(crate) outbox: RefCell<Outbox>,
    pub(crate) tally: Tally,
    /// Set when the server stops: answers close their connection.
    pub(crate) answers_close: Cell<bool>,
    /// Set later: connections close as soon as they owe no answer.
    pub(crate) draining: Cell<bool>,
    pub(crate) handoffs: HandoffSender,
    trusted_proxies: Arc<[IpNet]>,
    /// `None`: no proxy speaks the PROXY protocol.
    pub(super) proxy_trust: Option<ProxyTrust>,
    capture: RefCell<Option<Capture>>,
    account_limits: Option<Arc<Limits>>,
    access_log: Option<Arc<AccessLog>>,
}

/// What is used within one turn of one connection and holds nothing of it in between.
pub(crate) struct Scratch {
    pub(crate) input: Box<[u8]>,
    pub(crate) heads: ResponseHeads,
}

/// Counts since the last tick: an atomic for every request would be shared by all threads.
#[derive(Default)]
pub(crate) struct Tally {
    hits: Cell<u64>,
    loaded: Cell<u64>,
}

impl Tally {
    /// Absent links and all others are for the router to answer, which counts them.
    pub(super) fn count(&self, redirects: &RedirectCounts) {
        self.hits.set(self.hits.get() + redirects.hits);
        let loaded = u64::from(redirects.asked.is_some());
        self.loaded.set(self.loaded.get() + loaded);
    }

    fn flush(&self, metrics: &HttpMetrics, resolver: &Resolver) {
        let hits = self.hits.take();
        resolver.count_hits(hits);
        metrics.redirected(RedirectOutcome::Hit, hits);
        metrics.redirected(RedirectOutcome::Loaded, self.loaded.take());
    }
}

impl Worker {
    /// Returns the worker and the listener that it serves.
    fn new(parts: WorkerParts) -> (Self, TcpListener) {
        let response_sender = if parts.settings.io_uring {
            ResponseSender::new()
        } else {
            ResponseSender::default()
        };
        let has_headers = parts.settings.proxy_protocol == ProxyProtocol::V1V2;
        let proxy_trust = has_headers.then(|| ProxyTrust::new(&parts.trusted_proxies));
        let worker = Self {
            resolver: parts.resolver,
            clock: parts.clock,
            metrics: parts.metrics,
            slots: Slots::new(&parts.settings),
            scratch: RefCell::new(Scratch {
                input: vec![0; INPUT_BYTES].into_boxed_slice(),
                heads: ResponseHeads::new(parts.fields),
            }),
            outbox: RefCell::new(Outbox::new(response_sender)),
            tally: Tally::default(),
            answers_close: Cell::new(false),
            draining: Cell::new(false),
            handoffs: parts.handoffs,
            trusted_proxies: parts.trusted_proxies,
            proxy_trust,
            capture: RefCell::new(parts.capture),
            account_limits: parts.account_limits,
            access_log: parts.access_log,
        };
        (worker, parts.listener)
    }

    /// Passes on what was counted since the last time.
    fn flush_counts(&self) {
        self.tally.flush(&self.metrics, &self.resolver);
        let outbox = self.outbox.borrow();
        outbox.flush_latency(&self.metrics.redirect_seconds);
    }

    /// Writes a redirect down before its answer is sent, so that no answered one is missing after a crash.
    pub(crate) fn capture(
        &self,
        get: &PlainGet<'_>,
        hit: &ServedLink,
        peer: SocketAddr,
        now: UnixMillis,
    ) {
        let Some(capture) = &mut *self.capture.borrow_mut() else {
            return;
        };
        let address = self.address(get, peer);
        let (generation, attribution) = hit.attribution();
        let asked = clicks::RequestedLink {
            key: get.key,
            generation,
            outcome: Outcome::Redirected,
            attribution,
            utm: clicks::find_utm(
                hit.location_bytes(),
                get.query.filter(|_| hit.forward_query()),
            ),
        };
        // A full spool counts what it drops.
        let _written = capture.record(&clicks::by_worker(asked, &get.visitor, address, now));
    }

    /// Logs a redirect, where that is wanted.
    pub(crate) fn log_access(
        &self,
        get: &PlainGet<'_>,
        hit: &ServedLink,
        peer: SocketAddr,
        began: Instant,
    ) {
        if let Some(log) = &self.access_log {
            self.write_access(log, get, hit, peer, began);
        }
    }

    #[cold]
    fn write_access(
        &self,
        log: &AccessLog,
        get: &PlainGet<'_>,
        hit: &ServedLink,
        peer: SocketAddr,
        began: Instant,
    ) {
        let status = hit.status().code();
        if !log.wants(status) {
            return;
        }
        log.record(AccessEntry {
            at: self.clock.now(),
            method: if get.visitor.head { "HEAD" } else { "GET" },
            path: format!("/{}", get.key).into(),
            status,
            address: self.address(get, peer),
            user: None,
            elapsed: began.elapsed(),
            agent: shortened(get.visitor.agent),
            referrer: shortened(get.visitor.referrer),
            request_id: None,
        });
    }

    /// Returns whether no key is looked up for this visitor now. One relaxed load while that is so for nobody.
    pub(crate) fn holds(&self, get: &PlainGet<'_>, peer: SocketAddr, now: UnixMillis) -> bool {
        let limits = self.account_limits.as_ref();
        limits.is_some_and(|limits| {
            limits.throttles_any(now)
                && limits
                    .throttle_decision(self.address(get, peer), now)
                    .is_some()
        })
    }

    /// Returns the visitor's address, behind trusted proxies too.
    fn address(&self, get: &PlainGet<'_>, peer: SocketAddr) -> IpAddr {
        let forwarded = get.visitor.forwarded_for.last_first();
        address::nearest(peer.ip(), forwarded, &self.trusted_proxies)
    }
}

/// Runs a worker on the current thread until `stop`, and returns how many connections were cut after the grace period.
pub(crate) fn run(parts: WorkerParts, steps: &StopSteps) -> io::Result<usize> {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build_local(LocalOptions::default())?;
    runtime.block_on(serve(parts, steps))
}

async fn serve(parts: WorkerParts, steps: &StopSteps) -> io::Result<usize> {
    let (grace, limit) = (parts.settings.shutdown_grace, Arc::clone(&parts.limit));
    if let Some((lag, number)) = parts.loop_lag.clone() {
        // Ends with the runtime.
        tokio::task::spawn_local(async move { lag.probe(number).await });
    }
    let (worker, listener) = Worker::new(parts);
    let (worker, listener) = (
        Rc::new(worker),
        tokio::net::TcpListener::from_std(listener)?,
    );
    let ticks = tokio::task::spawn_local(tick(Rc::clone(&worker)));
    let rounds = tokio::task::spawn_local(end_rounds(Rc::clone(&worker)));
    let acceptor = Acceptor::new(&worker, &limit);
    loop {
        tokio::select! {
            biased;
            accepted = listener.accept() => acceptor.take(accepted).await,
            () = steps.answers_close.cancelled(), if !worker.answers_close.get() => {
                worker.answers_close.set(true);
            }
            () = steps.listeners_close.cancelled() => break,
        }
    }
    // Whoever the kernel has already let in is served: closing the listener would reset them.
    // The kernel is asked itself: the runtime may not have heard of the last ones yet.
    let listener = listener.into_std()?;
    end_handshakes(&listener).await;
    while let Some((stream, peer)) = accept_now(&listener) {
        acceptor
            .take(TcpStream::from_std(stream).map(|stream| (stream, peer)))
            .await;
    }
    drop(listener);
    worker.answers_close.set(true);
    tokio::select! {
        () = steps.idle_closes.cancelled() => {}
        () = worker.slots.emptied() => {}
    }
    worker.draining.set(true);
    worker.slots.wake_all();
    let drained = tokio::time::timeout(grace, worker.slots.emptied()).await;
    let cut = if drained.is_ok() {
        0
    } else {
        worker.slots.len()
    };
    for _ in 0..cut {
        worker.metrics.cut(CutReason::Shutdown);
    }
    ticks.abort();
    rounds.abort();
    worker.flush_counts();
    Ok(cut)
}

/// Keeps the time of the worker's connections and passes its counts on.
async fn tick(worker: Rc<Worker>) {
    let mut ticks = tokio::time::interval(worker.slots.tick());
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        worker.slots.advance();
        worker.flush_counts();
    }
}

/// Writes the answers of each round.
async fn end_rounds(worker: Rc<Worker>) {
    poll_fn(|cx| {
        worker.outbox.borrow_mut().end_round(cx.waker());
        Poll::Pending
    })
    .await
}
