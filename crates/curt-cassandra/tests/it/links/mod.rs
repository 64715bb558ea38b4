//! The ports of links.

mod suites;
