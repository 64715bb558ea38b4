//! Conformance suites of the ports and harnesses around the real binary. Tests only.

pub mod conformance;
pub mod sample;
