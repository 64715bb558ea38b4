//! Who may do what: users, their API keys and sessions, what they may follow and how much they may do.
//!
//! Every secret is shown once, as a [token] or a code; what is stored can recognise it but not rebuild it. Every
//! request with credentials passes [`ApiKeys::authenticate`] or [`UserOperations::authenticate_session`], which answer from
//! memory for at most a second, so that whatever is revoked stops working within that time on every instance.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod admit;
mod api_keys;
mod audit;
mod bulkhead;
mod constant_time;
mod credentials;
mod error;
mod ids;
mod limits;
mod passwords;
mod permissions;
mod principal;
mod services;
mod settings;
pub mod token;
mod ttl_cache;
mod users;

pub use api_keys::{ApiKeys, IssuedKey, KeyIssuer, NewKey};
pub use audit::{Audit, Origin};
pub use bulkhead::{Bulkhead, BulkheadSettings, CallerId, Place, Turn};
pub use constant_time::ConstantTime;
pub use error::AccountError;
pub use limits::{
    Decision, Guess, LimitSettings, Limits, RedirectionRules, SharedQuotas, policy,
    rate_limit_prefix,
};
pub use passwords::{HashPriority, PasswordCostError, Passwords, generate_password};
pub use permissions::{Granted, Permissions};
pub use principal::{Credential, Principal};
pub use services::AccountServices;
pub use settings::{AccountSettings, DisabledLinks, PasswordSettings, SignUp};
pub use token::Token;
pub use ttl_cache::CREDENTIAL_TTL;
pub use users::{
    InviteRef, IssuedInvite, NewUser, OPERATOR_EMAIL, SignIn, SignedIn, UserEdit, UserOperations,
    UserRef,
};
