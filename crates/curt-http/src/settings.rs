//! Settings of the HTTP surface, already checked: a value that is wrong cannot be built here.

use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;

use crate::cors::CorsOrigins;
use crate::pages::PageSettings;
use crate::scans::ScanSettings;

/// Everything that the HTTP surface can be told.
#[derive(Clone, Debug, Default)]
pub struct HttpSettings {
    pub server: ServerSettings,
    pub redirect: RedirectSettings,
    pub api: ApiSettings,
    pub scans: ScanSettings,
    pub feeds: FeedSettings,
    pub pages: PageSettings,
}

impl HttpSettings {
    /// Whether visitors come by TLS, and so must never be sent back to plain HTTP.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        let url = self.api.public_url.as_deref();
        url.is_some_and(|url| url.starts_with("https://"))
    }
}

/// What the API and the pages offer.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    /// The address that short URLs start with, such as `https://sho.rt`. `None`: the address listened on.
    pub public_url: Option<String>,
    /// Whether links may be made without an API key. Nobody can manage such links afterwards.
    pub anonymous_create: bool,
    /// Whether `/metrics` is also served beside the links, and not only on the administrator's port: whoever builds
    /// the server merges [`metrics_route`](crate::admin::metrics_route) into the router.
    pub metrics_on_main: bool,
    /// Networks whose `X-Forwarded-For` is believed. None: the client is whoever connected.
    pub trusted_proxies: Vec<IpNet>,
    /// Whose pages may use the API from a browser, beside our own.
    pub cors_origins: CorsOrigins,
    /// Whether long answers are compressed.
    pub compression: bool,
}

impl Default for ApiSettings {
    fn default() -> Self {
        Self {
            public_url: None,
            anonymous_create: false,
            metrics_on_main: false,
            trusted_proxies: Vec::new(),
            cors_origins: CorsOrigins::None,
            compression: true,
        }
    }
}

/// How many live feeds may be open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedSettings {
    /// Of everybody together.
    pub max: usize,
    pub per_user_max: usize,
    /// Of all users behind one address who are no administrators.
    pub per_address_max: usize,
    /// Of `max`, those that only administrators get.
    pub reserved_for_admins: usize,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self {
            max: 256,
            per_user_max: 16,
            per_address_max: 64,
            reserved_for_admins: 32,
        }
    }
}

/// Sockets, threads and patience.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Where links and API are served. Port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Threads that answer redirects, each with its own listener.
    pub workers: usize,
    /// Whether answers may be given to the kernel through an io_uring, many at a time, where it has one.
    pub io_uring: bool,
    /// Whether trusted proxies begin their connections with a header that names the client.
    pub proxy_protocol: ProxyProtocol,
    /// Connections open at once, over all threads. One more is answered with 503 and closed.
    pub connections_max: usize,
    /// How many of them one address may have (one /64 in IPv6), other than a trusted proxy. `None`: a quarter.
    pub connections_per_address: Option<usize>,
    /// From the first byte of a request to the end of its header.
    pub header_timeout: Duration,
    /// How long a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// How long a client may send nothing of a body; one that sends something has to send 64 KiB a second on average.
    pub body_timeout: Duration,
    /// Bytes of all bodies whose requests are under way, altogether.
    pub bodies_max: u64,
    /// Bulk requests of one user or one address that are under way at once.
    pub bulk_per_client: usize,
    /// How long a client may take to accept an answer that is ready.
    pub write_timeout: Duration,
    /// How long a server that was asked to stop goes on taking connections, so that balancers see it leave.
    pub drain_delay: Duration,
    /// What requests under way get after that before they are cut.
    pub shutdown_grace: Duration,
}

/// Which headers of the PROXY protocol are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyProtocol {
    #[default]
    Off,
    /// Trusted proxies have to send one, of version 1 or 2; from others it is a malformed request.
    V1V2,
}

/// Connections of operators, at most: health checks and metrics.
const ADMIN_CONNECTIONS_MAX: usize = 256;
const ADMIN_CONNECTIONS_MIN: usize = 16;

impl ServerSettings {
    /// Connections that one address may have, at least one.
    #[must_use]
    pub fn connections_per_address(&self) -> usize {
        let share = self.connections_per_address;
        share.unwrap_or(self.connections_max / 4).max(1)
    }

    /// Connections to the administrator's port: few, because they are files as well, and beyond `connections_max`.
    #[must_use]
    pub fn admin_connections_max(&self) -> usize {
        (self.connections_max / 4).clamp(ADMIN_CONNECTIONS_MIN, ADMIN_CONNECTIONS_MAX)
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            io_uring: true,
            proxy_protocol: ProxyProtocol::Off,
            connections_max: 20_000,
            connections_per_address: None,
            header_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(10),
            bodies_max: 64 << 20,
            bulk_per_client: 8,
            write_timeout: Duration::from_secs(10),
            drain_delay: Duration::ZERO,
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

/// What a redirect says beside its target.
#[derive(Clone, Debug)]
pub struct RedirectSettings {
    /// How long a browser may keep a permanent redirect (301, 308). Without a bound it would keep it for ever, and
    /// later edits would never be seen.
    pub permanent_max_age: Duration,
    pub referrer_policy: ReferrerPolicy,
    pub private_denied: PrivateDenied,
}

impl Default for RedirectSettings {
    fn default() -> Self {
        Self {
            permanent_max_age: Duration::from_secs(30),
            referrer_policy: ReferrerPolicy::default(),
            private_denied: PrivateDenied::default(),
        }
    }
}

/// What a signed-in visitor without permission gets for a private link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrivateDenied {
    /// 403.
    #[default]
    Forbidden,
    /// 404, as if there were no such link.
    Hidden,
}

/// The `Referrer-Policy` of a redirect: what the target learns about where its visitor came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferrerPolicy {
    NoReferrer,
    Origin,
    SameOrigin,
    StrictOrigin,
    #[default]
    StrictOriginWhenCrossOrigin,
    UnsafeUrl,
}

impl ReferrerPolicy {
    pub const ALL: [Self; 6] = [
        Self::NoReferrer,
        Self::Origin,
        Self::SameOrigin,
        Self::StrictOrigin,
        Self::StrictOriginWhenCrossOrigin,
        Self::UnsafeUrl,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoReferrer => "no-referrer",
            Self::Origin => "origin",
            Self::SameOrigin => "same-origin",
            Self::StrictOrigin => "strict-origin",
            Self::StrictOriginWhenCrossOrigin => "strict-origin-when-cross-origin",
            Self::UnsafeUrl => "unsafe-url",
        }
    }
}

/// The text names no referrer policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a referrer policy: use no-referrer, origin, same-origin, strict-origin, \
     strict-origin-when-cross-origin or unsafe-url"
)]
pub struct UnknownReferrerPolicy(pub String);

impl FromStr for ReferrerPolicy {
    type Err = UnknownReferrerPolicy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|policy| policy.as_str() == text)
            .ok_or_else(|| UnknownReferrerPolicy(text.to_owned()))
    }
}
