use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use curt_core::limits::HTTP_BULK_BODY_BYTES_MAX;
use curt_http::settings::UnknownReferrerPolicy;
use curt_http::{
    ApiSettings, CorsOrigins, FeedSettings, HttpSettings, PageSettings, PrivateDenied,
    ProxyProtocol, RedirectSettings, ScanSettings, ServerSettings,
};
use curt_links::{OwnHost, OwnHostError};
use ipnet::IpNet;
use url::Url;

use crate::config::check::{at, positive, within};
use crate::config::layers::quoted;
use crate::config::{ConfigError, StoreSettings, raw, units};

pub(super) fn http(
    raw: &raw::Server,
    pages: &raw::Pages,
    private_denied: PrivateDenied,
    store: &StoreSettings,
    scans: ScanSettings,
) -> Result<HttpSettings, ConfigError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = within("server.workers", raw.workers, 0, 1_024)?;
    Ok(HttpSettings {
        server: ServerSettings {
            listen: at("server.listen", address(&raw.listen))?,
            workers: if workers == 0 { cores } else { workers },
            io_uring: raw.io_uring,
            proxy_protocol: proxy_protocol(raw)?,
            connections_max: within("server.connections_max", raw.connections_max, 1, 10_000_000)?,
            connections_per_address: match within(
                "server.connections_per_address",
                raw.connections_per_address,
                0,
                10_000_000,
            )? {
                0 => None,
                share => Some(share),
            },
            header_timeout: positive("server.header_timeout", &raw.header_timeout)?,
            idle_timeout: positive("server.idle_timeout", &raw.idle_timeout)?,
            body_timeout: positive("server.body_timeout", &raw.body_timeout)?,
            bodies_max: at("server.bodies_max", bodies_max(&raw.bodies_max))?,
            bulk_per_client: within("server.bulk_per_client", raw.bulk_per_client, 1, 10_000)?,
            write_timeout: positive("server.write_timeout", &raw.write_timeout)?,
            drain_delay: drain_delay(raw, store)?,
            shutdown_grace: at(
                "server.shutdown_grace",
                units::duration(&raw.shutdown_grace),
            )?,
        },
        redirect: RedirectSettings {
            permanent_max_age: at(
                "server.permanent_max_age",
                units::duration(&raw.permanent_max_age),
            )?,
            referrer_policy: at(
                "server.referrer_policy",
                raw.referrer_policy
                    .parse()
                    .map_err(|problem: UnknownReferrerPolicy| problem.to_string()),
            )?,
            private_denied,
        },
        api: ApiSettings {
            public_url: public_url(raw)?,
            anonymous_create: raw.anonymous_create,
            metrics_on_main: raw.public_metrics,
            trusted_proxies: trusted_proxies(raw)?,
            cors_origins: at("server.cors_origins", CorsOrigins::parse(&raw.cors_origins))?,
            compression: raw.compression,
        },
        scans,
        feeds: feeds(raw)?,
        pages: page_settings(pages, raw)?,
    })
}

fn page_settings(raw: &raw::Pages, server: &raw::Server) -> Result<PageSettings, ConfigError> {
    let settings = at("pages.name", PageSettings::default().name(&raw.name))?;
    let settings = at("pages.accent", settings.accent(&raw.accent))?;
    let own_hosts = own_hosts(server)?;
    let leads_back = Url::parse(&raw.not_found_url)
        .is_ok_and(|url| url.path() != "/" && own_hosts.iter().any(|own| own.is_host_of(&url)));
    if leads_back {
        let problem = "leads back to this server, and may not be found again: use another site";
        return at("pages.not_found_url", Err(problem.to_owned()));
    }
    let settings = at(
        "pages.not_found_url",
        settings.not_found_url(&raw.not_found_url),
    )?;
    Ok(settings.with_preview(raw.preview))
}

/// One client gets a quarter, in which the largest body must have room.
const BODIES_MIN: u64 = 4 * HTTP_BULK_BODY_BYTES_MAX as u64;

fn bodies_max(text: &str) -> Result<u64, String> {
    match units::size(text)? {
        bytes if bytes < BODIES_MIN => {
            Err(format!("{text:?} is too small: write \"16MiB\" or more"))
        }
        bytes => Ok(bytes),
    }
}

/// Feeds beyond this would keep a database busy with nothing else.
const LIVE_FEEDS_MAX: u64 = 100_000;

fn feeds(raw: &raw::Server) -> Result<FeedSettings, ConfigError> {
    let bounded = |key, value, least| within(key, value, least, LIVE_FEEDS_MAX);
    let max = bounded("server.live_feeds_max", raw.live_feeds_max, 1)?;
    Ok(FeedSettings {
        max,
        per_user_max: bounded("server.live_feeds_per_user", raw.live_feeds_per_user, 1)?,
        per_address_max: bounded(
            "server.live_feeds_per_address",
            raw.live_feeds_per_address,
            1,
        )?,
        reserved_for_admins: within(
            "server.live_feeds_for_admins",
            raw.live_feeds_for_admins,
            0,
            raw.live_feeds_max,
        )?,
    })
}

/// A server whose database serves others, too, is likely to have a balancer before it, which looks at its health every
/// second or two.
const SHARED_DRAIN_DELAY: Duration = Duration::from_secs(3);

fn drain_delay(raw: &raw::Server, store: &StoreSettings) -> Result<Duration, ConfigError> {
    match raw.drain_delay.as_str() {
        "auto" if store.links.kind().is_shared() => Ok(SHARED_DRAIN_DELAY),
        "auto" => Ok(Duration::ZERO),
        text => at(
            "server.drain_delay",
            units::duration(text).map_err(|problem| format!("{problem}, or \"auto\"")),
        ),
    }
}

/// A network, or a single address.
fn trusted_proxies(raw: &raw::Server) -> Result<Vec<IpNet>, ConfigError> {
    let parsed = raw.trusted_proxies.iter().map(|text| {
        let network = text
            .parse()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network.map_err(|_| {
            format!(
                "{} is not a network: write it as 10.0.0.0/8 or fd00::/8",
                quoted(text)
            )
        })
    });
    at("server.trusted_proxies", parsed.collect())
}

fn proxy_protocol(raw: &raw::Server) -> Result<ProxyProtocol, ConfigError> {
    let read = match raw.proxy_protocol.as_str() {
        "off" => Ok(ProxyProtocol::Off),
        "v1v2" if raw.trusted_proxies.is_empty() => {
            Err("v1v2 needs server.trusted_proxies: nobody else may name clients".to_owned())
        }
        "v1v2" => Ok(ProxyProtocol::V1V2),
        other => Err(format!("{}: use off or v1v2", quoted(other))),
    };
    at("server.proxy_protocol", read)
}

pub(super) fn admin_listen(
    raw: &raw::Server,
    listen: SocketAddr,
) -> Result<Option<SocketAddr>, ConfigError> {
    let taken = [("server.listen", Some(listen))];
    further_listen("server.admin_listen", &raw.admin_listen, taken)
}

pub(super) fn agent_listen(
    raw: &raw::Server,
    listen: SocketAddr,
) -> Result<Option<SocketAddr>, ConfigError> {
    let taken = [
        ("server.listen", Some(listen)),
        ("server.admin_listen", admin_listen(raw, listen)?),
    ];
    further_listen("server.agent_listen", &raw.agent_listen, taken)
}

/// An address beside those that are taken; `None` for "".
fn further_listen<const N: usize>(
    key: &str,
    text: &str,
    taken: [(&str, Option<SocketAddr>); N],
) -> Result<Option<SocketAddr>, ConfigError> {
    let further = match text {
        "" => return Ok(None),
        text => at(key, address(text))?,
    };
    for (by, taken) in taken {
        let Some(taken) = taken else { continue };
        let is_wildcard = taken.ip().is_unspecified() || further.ip().is_unspecified();
        let shares_port = further.port() == taken.port() && further.port() != 0;
        if shares_port && (is_wildcard || further.ip() == taken.ip()) {
            let why = format!(
                "{further} is taken by {by}, {taken}: choose another port, or \"\" for none"
            );
            return at(key, Err(why));
        }
    }
    Ok(Some(further))
}

/// Hosts that lead here: the public address, and what the configuration adds. The server adds what it listens on.
pub(super) fn own_hosts(raw: &raw::Server) -> Result<Vec<OwnHost>, ConfigError> {
    let mut hosts = Vec::new();
    for host in &raw.own_hosts {
        let parsed = host
            .parse()
            .map_err(|problem: OwnHostError| problem.to_string());
        hosts.push(at("server.own_hosts", parsed)?);
    }
    if let Some(url) = public_url(raw)? {
        let authority = url
            .split_once("://")
            .map_or(url.as_str(), |(_, authority)| authority);
        let parsed = authority
            .parse()
            .map_err(|problem: OwnHostError| problem.to_string());
        let own: OwnHost = at("server.public_url", parsed)?;
        let port = Url::parse(&url)
            .ok()
            .and_then(|url| url.port_or_known_default());
        hosts.push(own.or_port(port));
    }
    Ok(hosts)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "{} is not an address: {}; write it as 127.0.0.1:8080 or [::]:8080",
            quoted(text),
            why_no_address(text)
        )
    })
}

fn why_no_address(text: &str) -> String {
    let Some((host, port)) = text.rsplit_once(':') else {
        return "it names no port".to_owned();
    };
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        return "its port is not a number".to_owned();
    }
    if port.parse::<u16>().is_err() {
        return format!("port {port} is above 65535");
    }
    if host.is_empty() {
        return "it names no IP address".to_owned();
    }
    if host.contains(':') && !host.starts_with('[') {
        return "an IPv6 address stands in brackets".to_owned();
    }
    "its host is not an IP address, and names are not looked up".to_owned()
}

/// The base of short links without a trailing slash, so that a key can be appended with one.
fn public_url(raw: &raw::Server) -> Result<Option<String>, ConfigError> {
    if raw.public_url.is_empty() {
        return Ok(None);
    }
    let wrong = |why: &str| {
        at(
            "server.public_url",
            Err(format!("{} {why}", quoted(&raw.public_url))),
        )
    };
    let Ok(url) = Url::parse(&raw.public_url) else {
        return wrong("is not a URL: write it as https://go.example.com");
    };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return wrong("must begin with http:// or https:// and name a host");
    }
    if url.query().is_some()
        || url.fragment().is_some()
        || !url.username().is_empty()
        || url.path() != "/"
    {
        return wrong("must have neither path, query, fragment nor user name");
    }
    Ok(Some(url.as_str().trim_end_matches('/').to_owned()))
}
