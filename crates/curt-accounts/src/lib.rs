//! Who may do what: users, their API keys and sessions, what they may follow and how much they may do.
//!
//! Every secret is shown once, as a [token] or a code; what is stored can recognise it but not rebuild it. Every
//! request with credentials passes [`ApiKeys::authenticate`] or [`People::authenticate_session`], which answer from
//! memory for at most a second, so that whatever is revoked stops working within that time on every instance.

#![forbid(unsafe_code)]

mod admit;
mod api_keys;
mod audit;
mod bulkhead;
mod credentials;
mod error;
mod even_time;
mod ids;
mod limits;
mod passwords;
mod people;
mod permissions;
mod principal;
mod services;
mod settings;
pub mod token;
mod verdicts;

pub use api_keys::{ApiKeys, IssuedKey, KeyMaker, NewKey};
pub use audit::{Audit, Origin};
pub use bulkhead::{Bulkhead, BulkheadSettings, CallerId, Place, Turn};
pub use error::AccountError;
pub use even_time::EvenTime;
pub use limits::{
    Decision, Guess, LimitSettings, Limits, RedirectionRules, policy, rate_limit_prefix,
};
pub use passwords::{HashPriority, PasswordCostError, Passwords, generate_password};
pub use people::{EditPerson, Invited, NewPerson, OPERATOR_EMAIL, People, SignIn, SignedIn, Whom};
pub use permissions::{Granted, Permissions};
pub use principal::{Principal, Via};
pub use services::AccountServices;
pub use settings::{AccountSettings, DisabledLinks, PasswordSettings, SignUp};
pub use token::Token;
pub use verdicts::VERDICT_TTL;
