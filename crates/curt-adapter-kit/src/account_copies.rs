//! Everything that an accounts database keeps, to be copied to another one, over what its ports offer and little else.

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::account::User;
use curt_core::ports::{
    AccountItem, Accounts, ApiKey, AuditEntry, ImportReport, Invite, Permission, PermissionId,
    Replacement, Transfer, TransferPart, Transferred as _, UserChange,
};
use curt_core::{ErrorKind, OwnerId, PortError, PortResult, UnixMillis};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

const ITEMS_AT_ONCE: usize = 200;
/// Users, keys and invitations that are imported at once.
const IMPORTS_AT_ONCE: usize = 16;
const OP_EXPORT: &str = "export accounts";

/// What an accounts database has that no other port lists or stores as it is, so that all of it can be copied. Optional.
///
/// Positions are texts of the engine's own; one of another engine is `Invalid`.
#[async_trait]
pub trait AccountCopies: Accounts {
    /// A part of all invitations that were not taken, expired ones too, and where to go on.
    async fn all_invites(&self, after: Option<&str>) -> PortResult<AccountPart<Invite>>;

    /// A part of all permissions, those of one link in the order of their ids, and where to go on.
    async fn all_permissions(&self, after: Option<&str>) -> PortResult<AccountPart<Permission>>;

    /// Stores the key as it is, with its number, in place of the one with that prefix, and says whether it did: not where
    /// another key has the number, or the prefix has another number. Keys that are added later have greater numbers. When
    /// it was used last is a matter of [`touch_api_keys`](curt_core::ports::ApiKeys::touch_api_keys). Called twice:
    /// no change.
    async fn put_api_key(&self, key: &ApiKey) -> PortResult<bool>;

    /// Adds entries under their numbers, which those that are recorded later exceed, and says how many were not there. One
    /// that is there stays as it is.
    async fn put_audit(&self, entries: &[(u64, AuditEntry)]) -> PortResult<u64>;
}

/// A part of all rows of one kind, and where to go on; `None`: this was the last.
pub type AccountPart<Row> = (Vec<Row>, Option<Box<str>>);

/// An accounts database as one side of a copy: users, API keys, invitations, permissions, and then the audit log, newest
/// first.
pub struct AccountTransfer {
    backend: &'static str,
    accounts: Arc<dyn AccountCopies>,
}

impl AccountTransfer {
    /// `backend` names the engine in errors.
    #[must_use]
    pub fn new(backend: &'static str, accounts: Arc<dyn AccountCopies>) -> Self {
        Self { backend, accounts }
    }

    async fn export(
        &self,
        kind: &str,
        rest: Option<&str>,
    ) -> PortResult<TransferPart<AccountItem>> {
        let accounts = &self.accounts;
        let number = || {
            let number = rest.map(str::parse::<u64>).transpose();
            number.map_err(|_| self.wrong_position())
        };
        match kind {
            "u" => {
                let users = accounts
                    .users(number()?.map(OwnerId), ITEMS_AT_ONCE)
                    .await?;
                let last = users.last().filter(|_| users.len() == ITEMS_AT_ONCE);
                let next = last.map_or("k".to_owned(), |last| format!("u{}", last.id.0));
                let items = users
                    .into_iter()
                    .map(|user| AccountItem::User(Box::new(user)));
                Ok(part(items, Some(next)))
            }
            "k" if rest.is_none() => {
                let keys = accounts.api_keys(None).await?.into_iter();
                let items = keys.map(|key| AccountItem::ApiKey(Box::new(key)));
                Ok(part(items, Some("i".to_owned())))
            }
            "i" => {
                let (invites, next) = accounts.all_invites(rest).await?;
                let next = next.map_or("p".to_owned(), |next| format!("i{next}"));
                Ok(part(
                    invites.into_iter().map(AccountItem::Invite),
                    Some(next),
                ))
            }
            "p" => {
                let (permissions, next) = accounts.all_permissions(rest).await?;
                let next = next.map_or("a".to_owned(), |next| format!("p{next}"));
                let items = permissions.into_iter().map(|permission| {
                    AccountItem::Permission(Permission {
                        id: PermissionId(0),
                        ..permission
                    })
                });
                Ok(part(items, Some(next)))
            }
            "a" => {
                let entries = accounts.audit(number()?, ITEMS_AT_ONCE).await?;
                let last = entries.last().filter(|_| entries.len() == ITEMS_AT_ONCE);
                let next = last.map(|(number, _)| format!("a{number}"));
                let items = entries.into_iter().map(|(number, entry)| {
                    // Not every engine takes a NUL, and people sign in as whatever they type.
                    let subject = entry.subject.replace('\0', "\u{fffd}").into();
                    AccountItem::Audit(number, AuditEntry { subject, ..entry })
                });
                Ok(part(items, next))
            }
            _ => Err(self.wrong_position()),
        }
    }

    fn wrong_position(&self) -> PortError {
        let detail = "the position is not one of an accounts database";
        PortError::new(ErrorKind::Invalid, self.backend, OP_EXPORT, detail)
    }

    async fn import(&self, item: &AccountItem) -> PortResult<Replacement> {
        match item {
            AccountItem::User(user) => self.import_user(item, user).await,
            AccountItem::ApiKey(key) => self.import_api_key(item, key).await,
            AccountItem::Invite(invite) => self.import_invite(item, invite).await,
            AccountItem::Permission(permission) => self.import_permission(item, permission).await,
            AccountItem::Audit(..) => Ok(Replacement::Same),
        }
    }

    async fn import_user(&self, item: &AccountItem, user: &User) -> PortResult<Replacement> {
        let decide = |there: User| item.replaces(&AccountItem::User(Box::new(there)));
        let Some(there) = self.accounts.user(user.id).await? else {
            if self.accounts.add_user(user).await? {
                return Ok(Replacement::Write);
            }
            // The email is another user's, unless the same call was done before.
            let there = self.accounts.user(user.id).await?;
            return Ok(there.map_or(Replacement::Conflict, decide));
        };
        let seen = there.updated_at;
        match decide(there) {
            Replacement::Write => {}
            decided => return Ok(decided),
        }
        Ok(match self.accounts.update_user(user, seen).await? {
            UserChange::Changed => Replacement::Write,
            UserChange::Stale | UserChange::Absent => Replacement::Outdated,
            UserChange::EmailTaken => Replacement::Conflict,
        })
    }

    async fn import_api_key(&self, item: &AccountItem, key: &ApiKey) -> PortResult<Replacement> {
        let there = self.accounts.api_key(&key.prefix).await?;
        let decide = |there| item.replaces(&AccountItem::ApiKey(Box::new(there)));
        match there.map_or(Replacement::Write, decide) {
            Replacement::Write => {}
            decided => return Ok(decided),
        }
        if !self.accounts.put_api_key(key).await? {
            return Ok(Replacement::Conflict);
        }
        if let Some(used_at) = key.last_used_at {
            let used = [(key.prefix.clone(), used_at)];
            self.accounts.touch_api_keys(&used).await?;
        }
        Ok(Replacement::Write)
    }

    async fn import_invite(&self, item: &AccountItem, invite: &Invite) -> PortResult<Replacement> {
        if self.accounts.add_invite(invite).await? {
            return Ok(Replacement::Write);
        }
        let ever = UnixMillis(i64::MIN);
        let there = self.accounts.invite(&invite.secret_hash, ever).await?;
        // Where there is none it was taken.
        let decide = |there| item.replaces(&AccountItem::Invite(there));
        Ok(there.map_or(Replacement::Outdated, decide))
    }

    async fn import_permission(
        &self,
        item: &AccountItem,
        permission: &Permission,
    ) -> PortResult<Replacement> {
        let Permission {
            user,
            link,
            generation,
            granted_at,
            ..
        } = permission;
        let all = self.accounts.permissions(link, *generation, usize::MAX);
        let there = all.await?.into_iter().find(|there| there.user == *user);
        if let Some(there) = there {
            let id = PermissionId(0);
            let there = AccountItem::Permission(Permission { id, ..there });
            return Ok(item.replaces(&there));
        }
        let granted = self.accounts.grant(*user, link, *generation, *granted_at);
        granted.await.map(|_| Replacement::Write)
    }
}

fn part(
    items: impl Iterator<Item = AccountItem>,
    next: Option<String>,
) -> TransferPart<AccountItem> {
    TransferPart {
        items: items.collect(),
        next: next.map(Into::into),
    }
}

#[async_trait]
impl Transfer<AccountItem> for AccountTransfer {
    async fn export_all(&self, after: Option<&str>) -> PortResult<TransferPart<AccountItem>> {
        let (kind, rest) = match after {
            None => ("u", ""),
            Some(text) => text
                .split_at_checked(1)
                .ok_or_else(|| self.wrong_position())?,
        };
        self.export(kind, Some(rest).filter(|rest| !rest.is_empty()))
            .await
    }

    async fn import_all(&self, items: &[AccountItem]) -> PortResult<ImportReport> {
        let mut report = ImportReport::default();
        let is_ordered = |item: &AccountItem| matches!(item, AccountItem::Permission(_));
        // Permissions get their ids in the order in which they come.
        for same in items.chunk_by(|one, next| is_ordered(one) == is_ordered(next)) {
            let at_once = match same.first().is_some_and(is_ordered) {
                true => 1,
                false => IMPORTS_AT_ONCE,
            };
            let imports: Vec<_> = same.iter().map(|item| self.import(item)).collect();
            let decided = stream::iter(imports).buffered(at_once);
            let decided: Vec<Replacement> = decided.try_collect().await?;
            for (item, decided) in same.iter().zip(decided) {
                report.count(item, decided);
            }
        }
        let audit = items.iter().filter_map(|item| match item {
            AccountItem::Audit(number, entry) => Some((*number, entry.clone())),
            _ => None,
        });
        let audit: Vec<_> = audit.collect();
        if !audit.is_empty() {
            report.written += self.accounts.put_audit(&audit).await?;
        }
        Ok(report)
    }
}
