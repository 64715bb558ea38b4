//! The LINKS line: admit, create, resolve, purge.

pub mod resolve;

pub use resolve::{Hit, Resolution, ResolveMetrics, Resolver, ResolverSettings};
