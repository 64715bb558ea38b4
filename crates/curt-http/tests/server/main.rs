//! The server as clients meet it: bytes in and bytes out over real sockets.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod client;
mod host;

mod forwarding;
mod idle_memory;
mod limits;
mod panics;
mod partial;
mod pipelining;
mod proxy_protocol;
mod requests;
mod shutdown;
mod timeouts;
