//! The clicks of PostgreSQL on real servers.

mod busy;
mod crowd;
mod damaged;
mod odd_texts;
mod pages;
mod suites;
mod unknown;
mod world;
