use async_trait::async_trait;
use curt_adapter_kit::{AccountCopies, AccountPart, ApiKeyTable};
use curt_core::ports::{ApiKey, AuditEntry, Invite, Permission};
use curt_core::{DomainId, ErrorKind, Key, LinkId, PortError, PortResult};
use scylla::DeserializeRow;

use super::CassandraAccounts;
use super::invites::GET as GET_INVITE;
use super::permissions::GET as GET_PERMISSIONS;
use crate::failure::{BACKEND, corrupt};
use crate::statement::Cql;
use crate::together::together;

const OP_EXPORT: &str = "export accounts";
const OP_IMPORT: &str = "import accounts";
const ROWS_AT_ONCE: i32 = 1_000;

const INVITES: Cql = Cql::read(
    "SELECT token(namespace, secret_hash) AS hash, namespace, secret_hash FROM KEYSPACE.invites \
     WHERE token(namespace, secret_hash) > ? AND token(namespace, secret_hash) <= ? LIMIT ?",
);
const PERMITTED: Cql = Cql::read(
    "SELECT DISTINCT token(namespace, domain, key) AS hash, namespace, domain, key FROM KEYSPACE.permissions \
     WHERE token(namespace, domain, key) > ? AND token(namespace, domain, key) <= ? LIMIT ?",
);

#[derive(DeserializeRow)]
struct ScannedInvite {
    hash: i64,
    namespace: String,
    secret_hash: Vec<u8>,
}

#[derive(DeserializeRow)]
struct PermittedLink {
    hash: i64,
    namespace: String,
    domain: i64,
    key: String,
}

impl PermittedLink {
    fn id(&self) -> PortResult<LinkId> {
        let key = Key::parse(&self.key).map_err(|error| corrupt(OP_EXPORT, error))?;
        let domain = u32::try_from(self.domain).map_err(|error| corrupt(OP_EXPORT, error))?;
        Ok(LinkId::new(DomainId(domain), key))
    }
}

#[async_trait]
impl AccountCopies for CassandraAccounts {
    async fn all_invites(&self, after: Option<&str>) -> PortResult<AccountPart<Invite>> {
        let values = (hash_of(after)?, i64::MAX, ROWS_AT_ONCE);
        let scan = self.engine.rows(OP_EXPORT, INVITES, values);
        let rows: Vec<ScannedInvite> = self.engine.list(OP_EXPORT, scan).await?;
        let next = next_of(rows.len(), rows.last().map(|row| row.hash));
        let own = rows
            .into_iter()
            .filter(|row| row.namespace == *self.namespace);
        let reads = own.map(|row| async move {
            let wrong = |_| corrupt(OP_EXPORT, "the hash of an invitation");
            let secret_hash: [u8; 32] = row.secret_hash.try_into().map_err(wrong)?;
            let found = self
                .find_invite(OP_EXPORT, GET_INVITE, &secret_hash)
                .await?;
            let open = found.filter(|invite| !invite.taken);
            open.map(|invite| invite.into_invite(OP_EXPORT, &secret_hash))
                .transpose()
        });
        let invites = self.engine.list(OP_EXPORT, together(reads)).await?;
        Ok((invites.into_iter().flatten().collect(), next))
    }

    async fn all_permissions(&self, after: Option<&str>) -> PortResult<AccountPart<Permission>> {
        let values = (hash_of(after)?, i64::MAX, ROWS_AT_ONCE);
        let scan = self.engine.rows(OP_EXPORT, PERMITTED, values);
        let rows: Vec<PermittedLink> = self.engine.list(OP_EXPORT, scan).await?;
        let next = next_of(rows.len(), rows.last().map(|row| row.hash));
        let own = rows.iter().filter(|row| row.namespace == *self.namespace);
        let reads = own.map(|row| async move {
            let link = row.id()?;
            let found = self.find_of_link(OP_EXPORT, GET_PERMISSIONS, &link).await?;
            let mut permissions = found.permissions;
            permissions.sort_unstable_by_key(|permission| permission.id);
            Ok(permissions)
        });
        let permissions = self.engine.list(OP_EXPORT, together(reads)).await?;
        Ok((permissions.into_iter().flatten().collect(), next))
    }

    async fn put_api_key(&self, key: &ApiKey) -> PortResult<bool> {
        let put = |table: &mut ApiKeyTable| Ok(table.put(key));
        let is_done = |table: &ApiKeyTable| {
            let stored = table.find(&key.prefix)?;
            (ApiKey {
                last_used_at: None,
                ..key.clone()
            } == *stored)
                .then_some(true)
        };
        self.change_keys(OP_IMPORT, put, is_done).await
    }

    async fn put_audit(&self, entries: &[(u64, AuditEntry)]) -> PortResult<u64> {
        let puts = entries
            .iter()
            .map(|(number, entry)| self.put_entry(OP_IMPORT, number.cast_signed(), entry));
        let added = self.engine.change_much(OP_IMPORT, together(puts)).await?;
        Ok(added.into_iter().filter(|is_added| *is_added).count() as u64)
    }
}

fn hash_of(after: Option<&str>) -> PortResult<i64> {
    let detail = "the position is not one of this database";
    let wrong = |_| PortError::new(ErrorKind::Invalid, BACKEND, OP_EXPORT, detail);
    after.map_or(Ok(i64::MIN), str::parse).map_err(wrong)
}

/// Behind the last row, unless there are no others.
fn next_of(rows: usize, last: Option<i64>) -> Option<Box<str>> {
    let is_full = rows == ROWS_AT_ONCE.unsigned_abs() as usize;
    last.filter(|_| is_full).map(|hash| hash.to_string().into())
}
