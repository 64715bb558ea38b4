//! The CLICKS line: what the redirect path writes down about a click, and what becomes of it.
//!
//! ```text
//! redirect worker ─► capture ─► spool ─► (forward ─► stream) ─► aggregate ─► flush ─► click store ─► report
//! ```
//! Nothing here is waited for by a redirect (C-2), and every click is counted once (C-1): the rollups and the position in
//! the spool that they reach change in one transaction.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod aggregate;
pub mod capture;
pub mod classify;
pub mod consume;
pub mod erase;
pub mod forward;
mod own_thread;
pub mod record;
pub mod report;
