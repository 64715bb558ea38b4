//! Conformance suites of the ports and harnesses around the real binary. Tests only.
//!
//! - [`conformance`]: one suite per port; an adapter is done when it passes.
//! - [`attended`]: a link store that tests can slow down and make fail.
//! - [`sample`]: values to test with.
//! - [`process`]: the real binary in a folder of its own, killed and started again.
//! - [`http`]: a small blocking client that sees every byte.

#![forbid(unsafe_code)]

pub mod attended;
pub mod conformance;
pub mod http;
pub mod process;
pub mod sample;
