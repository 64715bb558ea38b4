//! The CLICKS line: what the redirect path writes down about a click, and what becomes of it.
//!
//! ```text
//! redirect worker ─► capture ─► spool ─► fold ─► flush ─► click store ─► report
//! ```
//! Nothing here is waited for by a redirect (C-2), and every click is counted once (C-1): the sums and the position in
//! the spool that they reach change in one transaction.

pub mod capture;
pub mod classify;
pub mod flush;
pub mod fold;
pub mod record;
pub mod report;
