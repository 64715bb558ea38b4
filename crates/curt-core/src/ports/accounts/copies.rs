use super::{ApiKey, AuditEntry, Invite, Permission};
use crate::account::User;
use crate::ports::{Replacement, Transferred};

/// Something that an accounts database keeps. Sessions are left out: who is signed in signs in again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AccountItem {
    User(Box<User>),
    ApiKey(Box<ApiKey>),
    Invite(Invite),
    /// Without its id, which is the engine's own.
    Permission(Permission),
    Audit(u64, AuditEntry),
}

impl Transferred for AccountItem {
    fn name(&self) -> Box<str> {
        match self {
            Self::User(user) => format!("user {}", user.email),
            Self::ApiKey(key) => format!("API key {}", key.prefix),
            Self::Invite(invite) => {
                let hash = invite.secret_hash.iter().take(8);
                let hash: String = hash.map(|byte| format!("{byte:02x}")).collect();
                format!("invitation {hash}")
            }
            Self::Permission(one) => format!(
                "permission of user {} for {}, generation {}",
                one.user, one.link, one.generation
            ),
            Self::Audit(number, _) => format!("audit entry {number}"),
        }
        .into()
    }

    fn replaces(&self, there: &Self) -> Replacement {
        if self == there {
            return Replacement::Same;
        }
        match (self, there) {
            (Self::User(new), Self::User(old)) if new.id == old.id => {
                match new.updated_at.cmp(&old.updated_at) {
                    std::cmp::Ordering::Less => Replacement::Outdated,
                    std::cmp::Ordering::Equal => Replacement::Conflict,
                    std::cmp::Ordering::Greater => Replacement::Write,
                }
            }
            (Self::ApiKey(new), Self::ApiKey(old))
                if (new.number, new.secret_hash) == (old.number, old.secret_hash) =>
            {
                match new.last_used_at < old.last_used_at {
                    true => Replacement::Outdated,
                    false => Replacement::Write,
                }
            }
            // The one who was permitted first.
            (Self::Permission(_), Self::Permission(_)) => Replacement::Outdated,
            _ => Replacement::Conflict,
        }
    }
}
