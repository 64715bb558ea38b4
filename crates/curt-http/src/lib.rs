//! The only crate that knows HTTP, JSON and HTML.
//!
//! A connection starts in [`server`], on a thread that does nothing but redirects ([`redirect`]); the first request
//! that is anything else takes the connection to hyper and the router.

pub mod metrics;
pub mod redirect;
pub mod server;
pub mod settings;

pub use metrics::HttpMetrics;
pub use settings::{HttpSettings, RedirectSettings, ServerSettings};
