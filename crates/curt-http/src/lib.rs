//! The only crate that knows HTTP, JSON and HTML.
//!
//! A connection starts in [`server`], on a thread that does nothing but redirects ([`redirect`]); the first request
//! that is anything else takes the connection to hyper and the router.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod access_log;
pub mod admin;
pub mod api;
mod body_budget;
mod body_rate;
mod caller;
mod colour;
mod compression;
mod cors;
mod latency;
pub mod metrics;
mod openapi;
mod pages;
pub mod problem;
mod qr;
mod rate_limit;
mod readiness;
pub mod redirect;
mod scans;
pub mod server;
pub mod settings;
pub mod state;
mod system;
mod tasks;
mod vary;

pub use access_log::{AccessEntry, AccessLog, AccessScope};
pub use body_budget::BodyBudget;
pub use cors::CorsOrigins;
pub use metrics::HttpMetrics;
pub use pages::PageSettings;
pub use qr::QrLogo;
pub use readiness::{Check, FailedCheck, Impact, Readiness};
pub use redirect::clicks::{Clicks, RouterClicks};
pub use scans::{AbandonedReads, ScanSettings, Scans};
pub use settings::{
    ApiSettings, FeedSettings, HttpSettings, PrivateDenied, ProxyProtocol, RedirectSettings,
    ServerSettings,
};
pub use state::{App, PublicUrl};
pub use system::{InstanceStatus, ProcessStatus, StoreStatus, SystemSource};
