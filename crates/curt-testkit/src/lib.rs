//! Conformance suites of the ports and harnesses around the real binary. Tests only.
//!
//! - [`conformance`]: one suite per port; an adapter is done when it passes.
//! - [`alias_race`]: one alias that many clients want while answers get lost.
//! - [`attended`]: a link store that tests can slow down and make fail.
//! - [`click_scale`]: reports and flushes of full size, for every click store.
//! - [`holder`]: a process that holds a lock.
//! - [`sample`]: values to test with.
//! - [`fuzz`]: seeded mutation of samples, for parsers of outside bytes.
//! - [`keys`]: key supplies without engines.
//! - [`length`]: how much of everything a test does.
//! - [`process`]: the real binary in a folder of its own, killed and started again.
//! - [`engines`]: real databases, queues and the like, started, hurt and cleaned away; [`skipped`] where they are missing.
//! - [`stop`]: ends for threads, so that a failed assertion is not a hang.
//! - [`http`]: a small blocking client that sees every byte.

#![forbid(unsafe_code)]

pub mod alias_race;
pub mod click_scale;
pub mod conformance;
pub mod engines;
pub mod fuzz;
pub mod holder;
pub mod http;
pub mod intercept;
pub mod keys;
pub mod length;
pub mod process;
pub mod sample;
pub mod skipped;
pub mod stop;
mod watchdog;
