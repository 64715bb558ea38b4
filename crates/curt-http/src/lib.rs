//! The only crate that knows HTTP, JSON and HTML.
//!
//! A connection starts in [`server`], on a thread that does nothing but redirects ([`redirect`]); the first request
//! that is anything else takes the connection to hyper and the router.

pub mod admin;
pub mod api;
mod body_budget;
mod body_rate;
mod caller;
pub mod metrics;
mod openapi;
mod pages;
pub mod problem;
mod rate_limit;
mod readiness;
pub mod redirect;
mod scans;
pub mod server;
pub mod settings;
pub mod state;
mod tasks;

pub use body_budget::BodyBudget;
pub use metrics::HttpMetrics;
pub use readiness::{Check, Failure, Impact, Readiness};
pub use redirect::clicks::{Clicks, RouterClicks};
pub use scans::{AbandonedReads, ScanSettings, Scans};
pub use settings::{
    ApiSettings, FeedSettings, HttpSettings, PrivateDenied, RedirectSettings, ServerSettings,
};
pub use state::{App, PublicUrl};
