//! Memcached as a cache of links, over its meta commands: version 1.6 or later.
//!
//! # Addresses
//! `memcached://host:11211?prefix=curt:`. One server each; a ring of them is built above this crate. The port may be left
//! out. `prefix` goes before every key, so that several installations can share a server. Memcached has no passwords worth
//! the name: its port belongs into a closed network.
//!
//! # Requests
//! One connection, on which requests of all callers follow each other without waiting. A caller that gives up leaves its
//! answer to be read and dropped. A connection whose oldest request has no answer in time is closed, and another one made
//! in the background.
//!
//! # Set if newer
//! An entry is read with the number that Memcached gives each version of an item, compared, and replaced if the number is
//! still the same; otherwise again.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod connection;
mod link_cache;
mod protocol;

use std::sync::Arc;
use std::time::Duration;

use curt_adapter_kit::address::Address;
use curt_adapter_kit::plain_text;
use curt_adapter_kit::reconnect::Reconnecting;
use curt_core::ports::LinkCache;
use curt_core::{ErrorKind, PortError, PortResult};

use connection::Connection;
use protocol::{Reply, is_name};

/// The adapter's name in errors.
const BACKEND: &str = "memcached";
const PORT: u16 = 11_211;
const PARAMETERS: [&str; 1] = ["prefix"];
/// Longest prefix: with it, the longest key stays below Memcached's limit of 250 bytes.
const PREFIX_BYTES_MAX: usize = 100;

/// How long to wait for Memcached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemcachedSettings {
    pub connect_timeout: Duration,
    /// For an answer, before the connection is given up.
    pub answer_timeout: Duration,
}

impl Default for MemcachedSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_millis(500),
            answer_timeout: Duration::from_secs(1),
        }
    }
}

/// A Memcached server.
pub struct Memcached {
    prefix: Box<str>,
    link: Reconnecting<Connection>,
}

impl Memcached {
    /// Reads the address. Connects with the first call, so that a server that is away keeps nobody from starting.
    pub fn open(address: &str, settings: MemcachedSettings) -> PortResult<Arc<Self>> {
        let address = Address::parse(address).map_err(invalid)?;
        address.refuse_unknown(&PARAMETERS).map_err(invalid)?;
        let [host] = &address.hosts[..] else {
            return Err(invalid("one address names one server; name several"));
        };
        if !address.path.is_empty() || address.user.is_some() || address.password.is_some() {
            return Err(invalid("only a host, a port and a prefix can be named"));
        }
        let prefix: Box<str> = address.parameter("prefix").unwrap_or("curt:").into();
        if prefix.len() > PREFIX_BYTES_MAX || !(prefix.is_empty() || is_name(&prefix)) {
            let why = "the prefix has at most 100 bytes, letters, digits and signs alone";
            return Err(invalid(why));
        }
        if !plain_text::is_this_machine(&host.name) {
            plain_text::warn(BACKEND, &host.name);
        }
        let place = (host.name.clone(), host.port_or(PORT));
        let connect = move || Connection::open(place.clone(), settings);
        Ok(Arc::new(Self {
            prefix,
            link: Reconnecting::new(connect),
        }))
    }

    /// Links as they are served, shared between processes.
    #[must_use]
    pub fn link_cache(self: &Arc<Self>) -> Arc<dyn LinkCache> {
        Arc::new(link_cache::MemcachedLinkCache::new(Arc::clone(self)))
    }

    /// Whether the server can be asked.
    pub async fn ping(&self) -> PortResult<()> {
        self.run("answer a ping", b"mn\r\n".to_vec(), 1)
            .await
            .map(drop)
    }

    /// Sends commands together and returns their answers, one each.
    async fn run(
        &self,
        op: &'static str,
        commands: Vec<u8>,
        answers: usize,
    ) -> PortResult<Vec<Reply>> {
        let current = self.link.get(op).await?;
        let answer = current.connection.call(commands, answers).await;
        answer.map_err(|failure| {
            self.link.lost(&current);
            failure.into_port_error(op)
        })
    }
}

impl std::fmt::Debug for Memcached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memcached")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

fn invalid(detail: impl Into<String>) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, "read the address", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wrong_address_is_refused() {
        let open = |text: &str| Memcached::open(text, MemcachedSettings::default());
        for wrong in [
            "memcached://a,b",
            "memcached://a/1",
            "memcached://me@a",
            "memcached://a?prefx=b",
            "memcached://a?prefix=a%20b",
            "memcached://a?prefix=a%0d%0ab",
        ] {
            let error = open(wrong).err().map(|error| error.kind);
            assert_eq!(error, Some(ErrorKind::Invalid), "{wrong}");
        }
        assert!(open("memcached://127.0.0.1?prefix=a:").is_ok());
    }
}
