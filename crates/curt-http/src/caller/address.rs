//! The visitor's address. Proxies write it into `X-Forwarded-For`, and so can anybody else: only what a trusted proxy
//! wrote counts, read from the right, where the nearest one wrote.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::ConnectInfo;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use ipnet::IpNet;

const X_FORWARDED_FOR: &str = "x-forwarded-for";
/// A longer chain is somebody's joke.
const HOPS_MAX: usize = 32;

pub(crate) fn of(parts: &Parts, trusted: &[IpNet]) -> IpAddr {
    of_headers(parts.extensions.get(), &parts.headers, trusted)
}

pub(crate) fn of_headers(
    peer: Option<&ConnectInfo<SocketAddr>>,
    headers: &HeaderMap,
    trusted: &[IpNet],
) -> IpAddr {
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    let lines = headers.get_all(X_FORWARDED_FOR);
    let lines: Vec<_> = lines.iter().map(HeaderValue::as_bytes).collect();
    nearest(peer, lines.iter().rev().copied(), trusted)
}

/// By the lines of `X-Forwarded-For`, the last one first.
pub(crate) fn nearest<'a>(
    peer: IpAddr,
    lines: impl Iterator<Item = &'a [u8]>,
    trusted: &[IpNet],
) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|net| net.contains(address));
    let mut nearest = peer.to_canonical();
    if !is_trusted(&nearest) {
        return nearest;
    }
    let texts = lines.filter_map(|line| std::str::from_utf8(line).ok());
    let hops = texts.flat_map(|line| line.rsplit(','));
    for hop in hops.take(HOPS_MAX) {
        // What is not an address tells no more than the proxy that passed it on.
        let Some(address) = parse(hop.trim()) else {
            break;
        };
        nearest = address;
        if !is_trusted(&address) {
            break;
        }
    }
    nearest
}

/// Some proxies add the port, and brackets around IPv6.
fn parse(hop: &str) -> Option<IpAddr> {
    let bare = hop
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address = bare.unwrap_or(hop).parse::<IpAddr>();
    let address = address.or_else(|_| hop.parse::<SocketAddr>().map(|socket| socket.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn seen(peer: &str, trusted: &[&str], forwarded: &[&str]) -> String {
        let mut request = Request::new(());
        let peer: IpAddr = peer.parse().unwrap();
        let socket = SocketAddr::new(peer, 4_711);
        request.extensions_mut().insert(ConnectInfo(socket));
        for line in forwarded {
            request
                .headers_mut()
                .append(X_FORWARDED_FOR, line.parse().unwrap());
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|net| net.parse().unwrap()).collect();
        of(&request.into_parts().0, &trusted).to_string()
    }

    #[test]
    fn only_what_a_trusted_proxy_wrote_counts() {
        let proxies = ["10.0.0.0/8", "fd00::/8", "192.0.2.7/32"];
        for (peer, trusted, forwarded, expected) in [
            ("203.0.113.9", &[][..], &["1.2.3.4"][..], "203.0.113.9"),
            ("203.0.113.9", &proxies, &["1.2.3.4"], "203.0.113.9"),
            ("10.0.0.1", &proxies, &[], "10.0.0.1"),
            ("10.0.0.1", &proxies, &["1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", &proxies, &["6.6.6.6, 1.2.3.4"], "1.2.3.4"),
            (
                "10.0.0.1",
                &proxies,
                &["6.6.6.6,1.2.3.4 , 10.9.9.9"],
                "1.2.3.4",
            ),
            (
                "10.0.0.1",
                &proxies,
                &["6.6.6.6", "1.2.3.4", "10.9.9.9, 192.0.2.7"],
                "1.2.3.4",
            ),
            ("10.0.0.1", &proxies, &["1.2.3.4, garbage"], "10.0.0.1"),
            (
                "10.0.0.1",
                &proxies,
                &["1.2.3.4, garbage, 10.2.2.2"],
                "10.2.2.2",
            ),
            ("10.0.0.1", &proxies, &[""], "10.0.0.1"),
            ("10.0.0.1", &proxies, &["1.2.3.4:5678"], "1.2.3.4"),
            ("10.0.0.1", &proxies, &["[2001:db8::1]"], "2001:db8::1"),
            ("10.0.0.1", &proxies, &["[2001:db8::1]:443"], "2001:db8::1"),
            ("10.0.0.1", &proxies, &["::ffff:1.2.3.4"], "1.2.3.4"),
            ("::ffff:10.0.0.1", &proxies, &["1.2.3.4"], "1.2.3.4"),
            ("fd00::1", &proxies, &["10.1.1.1, 10.1.1.2"], "10.1.1.1"),
        ] {
            assert_eq!(
                seen(peer, trusted, forwarded),
                expected,
                "{peer} {forwarded:?}"
            );
        }
    }
}
