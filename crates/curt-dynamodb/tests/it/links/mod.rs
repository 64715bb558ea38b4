//! The ports of links.

mod faults;
mod races;
mod suites;
