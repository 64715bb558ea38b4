//! Measuring tools: load generators for a running server, and the comparison behind `make bench`.
//!
//! - [`load`]: a single-threaded generator for redirects and creates, closed or open loop, loopback only.
//! - [`suite`]: starts curt and nginx, loads them in turn, compares, and writes the table of results.
//! - [`zipf`], [`keys`], [`random`]: which key is asked for next.
//! - [`cpu`], [`pin`], [`machine`], [`median`]: what was spent, where it ran, and how runs are summed up.

#![forbid(unsafe_code)]

pub mod cpu;
pub mod keys;
pub mod load;
pub mod machine;
pub mod median;
pub mod pin;
pub mod random;
pub mod suite;
pub mod zipf;
