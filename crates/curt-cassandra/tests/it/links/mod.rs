//! The ports of links.

mod races;
mod suites;
