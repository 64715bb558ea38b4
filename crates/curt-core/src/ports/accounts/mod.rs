//! Who may do what, in six small parts that one engine keeps together.

mod api_keys;
mod audit;
mod copies;
mod invites;
mod permissions;
mod sessions;
mod users;

pub use api_keys::*;
pub use audit::*;
pub use copies::*;
pub use invites::*;
pub use permissions::*;
pub use sessions::*;
pub use users::*;

/// Users, and everything that belongs to one.
pub trait Accounts: Users + ApiKeys + Sessions + Invites + Permissions + AuditLog {}

impl<T: Users + ApiKeys + Sessions + Invites + Permissions + AuditLog + ?Sized> Accounts for T {}
