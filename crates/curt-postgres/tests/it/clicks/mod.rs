//! The clicks of PostgreSQL on real servers.

mod crowd;
mod damaged;
mod odd_texts;
mod pages;
mod suites;
mod unknown;
mod world;
