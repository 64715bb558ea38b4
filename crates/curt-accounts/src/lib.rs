//! Who may do what: owners and their API keys.
//!
//! An API key is shown once, as a [token](token); what is stored can recognise it but not rebuild it. Every request
//! with credentials passes [`ApiKeys::authenticate`], which answers from memory for at most a second, so that a
//! revoked key stops working within that time on every instance.

#![forbid(unsafe_code)]

mod api_keys;
mod names;
pub mod token;
mod verdicts;

pub use api_keys::{AccountError, ApiKeys, IssuedKey, Principal};
pub use names::NameError;
pub use token::Token;
pub use verdicts::VERDICT_TTL;
