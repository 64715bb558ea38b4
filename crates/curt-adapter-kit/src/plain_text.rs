//! Connections that others on the way can read.

use std::net::IpAddr;

use curt_core::names::event;

/// Whether a host is this machine: what is sent there crosses no network.
pub fn is_this_machine(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    bare.eq_ignore_ascii_case("localhost")
        || bare
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Tells the operator. `place` holds no secrets.
pub fn warn(engine: &'static str, place: &str) {
    tracing::warn!(
        event = event::ENCRYPTION_LACKED,
        engine,
        place,
        "connection not encrypted"
    );
}
