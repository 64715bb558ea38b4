//! What copies of accounts need beside the ports.

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{ApiKey, AuditEntry, Invite, Permission};

use super::WideAccounts;
use crate::wide_column::{ReadMode, together};
use crate::{AccountCopies, AccountPart, ApiKeyTable};

const OP_EXPORT: &str = "export accounts";
const OP_IMPORT: &str = "import accounts";

#[async_trait]
impl AccountCopies for WideAccounts {
    async fn all_invites(&self, after: Option<&str>) -> PortResult<AccountPart<Invite>> {
        let scan = self.rows.scan_invites(OP_EXPORT, after);
        let part = self.deadlines.list(OP_EXPORT, scan).await?;
        let reads = part.rows.iter().map(|secret_hash| {
            self.rows
                .get_invite(OP_EXPORT, secret_hash, ReadMode::Acknowledged)
        });
        let invites = self.deadlines.list(OP_EXPORT, together(reads)).await?;
        let open = invites.into_iter().flatten().filter(|row| !row.is_taken);
        Ok((open.map(|row| row.invite).collect(), part.next))
    }

    async fn all_permissions(&self, after: Option<&str>) -> PortResult<AccountPart<Permission>> {
        let scan = self.rows.scan_permissions(OP_EXPORT, after);
        let part = self.deadlines.list(OP_EXPORT, scan).await?;
        let reads = part.rows.iter().map(|link| {
            self.rows
                .get_permissions(OP_EXPORT, link, ReadMode::Acknowledged)
        });
        let found = self.deadlines.list(OP_EXPORT, together(reads)).await?;
        let sorted = found.into_iter().flat_map(|mut of_link| {
            of_link.permissions.sort_unstable_by_key(|one| one.id);
            of_link.permissions
        });
        Ok((sorted.collect(), part.next))
    }

    async fn put_api_key(&self, key: &ApiKey) -> PortResult<bool> {
        let put = |table: &mut ApiKeyTable| Ok(table.put(key));
        let is_done = |table: &ApiKeyTable| {
            let stored = table.find(&key.prefix)?;
            let unused = ApiKey {
                last_used_at: None,
                ..key.clone()
            };
            (unused == *stored).then_some(true)
        };
        self.change_keys(OP_IMPORT, put, is_done).await
    }

    async fn put_audit(&self, entries: &[(u64, AuditEntry)]) -> PortResult<u64> {
        let puts = entries
            .iter()
            .map(|(number, entry)| self.put_entry(OP_IMPORT, number.cast_signed(), entry));
        let puts = together(puts);
        let added = self.deadlines.change_much(OP_IMPORT, puts).await?;
        Ok(added.into_iter().filter(|is_added| *is_added).count() as u64)
    }
}
