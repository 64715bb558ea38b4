//! The CLICKS line: what the redirect path writes down about a click, and what becomes of it.
//!
//! ```text
//! redirect worker ─► capture ─► spool ─► aggregate ─► flush ─► click store ─► report
//! ```
//! Nothing here is waited for by a redirect (C-2), and every click is counted once (C-1): the rollups and the position in
//! the spool that they reach change in one transaction.

pub mod aggregate;
pub mod capture;
pub mod classify;
pub mod consume;
pub mod record;
pub mod report;
