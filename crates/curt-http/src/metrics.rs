//! What the HTTP surface counts.

use std::fmt;

use curt_core::names::metric;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::latency::LatencyHistogram;

/// Bounds of the request-time histogram, seconds: a cached answer takes well under a millisecond, a group commit a
/// few, and the longest deadline is ten seconds.
const SECONDS_BUCKETS: [f64; 12] = [
    0.000_25, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0,
];

/// Handles to the counters; cheap to clone.
#[derive(Clone, Debug)]
pub struct HttpMetrics {
    pub redirects: Family<RedirectLabels, Counter>,
    pub redirect_seconds: LatencyHistogram,
    pub misses_unrecorded: Counter,
    pub requests: Family<RequestLabels, Counter>,
    pub request_seconds: Family<RouteLabels, Histogram>,
    pub requests_shed: Counter,
    pub connections: Gauge,
    pub load_weight: Gauge,
    pub connections_cut: Family<CutLabels, Counter>,
    pub body_bytes: Gauge,
    pub requests_refused: Family<RefusalLabels, Counter>,
}

/// What a server gets that measures nothing.
fn whole_load() -> Gauge {
    let gauge = Gauge::default();
    gauge.set(100);
    gauge
}

impl HttpMetrics {
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::unregistered();
        registry.register(
            metric::REDIRECTS,
            "Redirects answered, by outcome",
            metrics.redirects.clone(),
        );
        registry.register(
            metric::REDIRECT_SECONDS,
            "Time from reading a request for a live link to sending the redirect, seconds; answers that are sent together count as the slowest of them",
            metrics.redirect_seconds.clone(),
        );
        registry.register(
            metric::MISSES_UNRECORDED,
            "Requests beyond the limit on misses, which are in no report",
            metrics.misses_unrecorded.clone(),
        );
        registry.register(
            metric::HTTP_REQUESTS,
            "Requests that the API answered, by route, method and status",
            metrics.requests.clone(),
        );
        registry.register(
            metric::HTTP_REQUEST_SECONDS,
            "Time to answer an API request, seconds",
            metrics.request_seconds.clone(),
        );
        registry.register(
            metric::HTTP_REQUESTS_SHED,
            "Requests refused because too many like them were under way",
            metrics.requests_shed.clone(),
        );
        registry.register(
            metric::HTTP_CONNECTIONS,
            "Connections open now",
            metrics.connections.clone(),
        );
        registry.register(
            metric::LOAD_WEIGHT,
            "Part of its usual load that balancers are told to give this server, percent",
            metrics.load_weight.clone(),
        );
        registry.register(
            metric::HTTP_CONNECTIONS_CUT,
            "Connections closed by the server, by reason",
            metrics.connections_cut.clone(),
        );
        registry.register(
            metric::HTTP_BODY_BYTES,
            "Bytes of the body budget in use now",
            metrics.body_bytes.clone(),
        );
        registry.register(
            metric::HTTP_REQUESTS_REFUSED,
            "Requests refused before their body was read, by reason",
            metrics.requests_refused.clone(),
        );
        metrics
    }

    /// Counters that nobody exposes: for tests and tools.
    #[must_use]
    pub fn unregistered() -> Self {
        Self {
            redirects: Family::default(),
            redirect_seconds: LatencyHistogram::default(),
            misses_unrecorded: Counter::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(|| Histogram::new(SECONDS_BUCKETS)),
            requests_shed: Counter::default(),
            connections: Gauge::default(),
            load_weight: whole_load(),
            connections_cut: Family::default(),
            body_bytes: Gauge::default(),
            requests_refused: Family::default(),
        }
    }

    pub fn redirected(&self, outcome: RedirectOutcome, count: u64) {
        if count > 0 {
            self.redirects
                .get_or_create(&RedirectLabels { outcome })
                .inc_by(count);
        }
    }

    pub(crate) fn refused(&self, reason: RefusalReason) {
        self.requests_refused
            .get_or_create(&RefusalLabels { reason })
            .inc();
    }

    pub(crate) fn cut(&self, reason: CutReason) {
        self.connections_cut
            .get_or_create(&CutLabels { reason })
            .inc();
    }
}

/// How a look-up for a redirect ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedirectOutcome {
    /// From the process's cache.
    Hit,
    /// From the store.
    Loaded,
    Absent,
    Gone,
    /// The target is on the blocklist.
    Blocked,
    /// Not for this visitor, or not without more than they showed.
    Refused,
    /// Over a limit on clicks or on misses.
    Limited,
    Error,
}

impl RedirectOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Loaded => "loaded",
            Self::Absent => "absent",
            Self::Gone => "gone",
            Self::Blocked => "blocked",
            Self::Refused => "refused",
            Self::Limited => "limited",
            Self::Error => "error",
        }
    }
}

impl EncodeLabelValue for RedirectOutcome {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        self.as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RedirectLabels {
    pub outcome: RedirectOutcome,
}

/// Why the server closed a connection that its client would have kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutReason {
    HeaderTimeout,
    BodyTimeout,
    WriteTimeout,
    Idle,
    /// More connections than the setting allows.
    Limit,
    /// More connections of one address than the setting allows.
    AddressLimit,
    /// More requests for the API than can be taken over.
    Overload,
    HeadTooLarge,
    Malformed,
    /// A trusted proxy did not begin with a header of the PROXY protocol.
    ProxyHeader,
    /// Still busy when the grace period of a shutdown ended.
    Shutdown,
}

impl CutReason {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HeaderTimeout => "header_timeout",
            Self::BodyTimeout => "body_timeout",
            Self::WriteTimeout => "write_timeout",
            Self::Idle => "idle",
            Self::Limit => "limit",
            Self::AddressLimit => "address_limit",
            Self::Overload => "overload",
            Self::HeadTooLarge => "head_too_large",
            Self::Malformed => "malformed",
            Self::ProxyHeader => "proxy_header",
            Self::Shutdown => "shutdown",
        }
    }
}

impl EncodeLabelValue for CutReason {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        self.as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CutLabels {
    pub reason: CutReason,
}

/// Why a request was refused for what it would hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    /// The bodies of all clients together.
    BodyBudget,
    /// Those of one client.
    BodyShare,
    /// More bulk requests of one client than the setting allows.
    BulkAtOnce,
}

impl RefusalReason {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BodyBudget => "body_budget",
            Self::BodyShare => "body_share",
            Self::BulkAtOnce => "bulk_at_once",
        }
    }
}

impl EncodeLabelValue for RefusalReason {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        self.as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RefusalLabels {
    pub reason: RefusalReason,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    pub route: String,
    pub method: String,
    pub status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RouteLabels {
    pub route: String,
}
