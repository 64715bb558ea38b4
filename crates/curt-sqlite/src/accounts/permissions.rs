use async_trait::async_trait;
use curt_core::ports::{LinkChange, Permission, PermissionId, Permissions};
use curt_core::{DomainId, LinkId, OwnerId, PortResult, UnixMillis};
use rusqlite::Row;

use super::{SqliteAccounts, rows_max};
use crate::decode;

#[async_trait]
impl Permissions for SqliteAccounts {
    async fn grant(
        &self,
        user: OwnerId,
        link: &LinkId,
        generation: u32,
        now: UnixMillis,
    ) -> PortResult<Permission> {
        let link = link.clone();
        self.db
            .writer
            .write("grant a permission", 1, move |work| {
                let user = user.0.cast_signed();
                let key = link.key.as_str();
                work.connection
                    .prepare_cached(
                        "INSERT INTO permissions (domain, key, generation, user, granted_at) \
                         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
                    )?
                    .execute((link.domain.0, key, generation, user, now.0))?;
                work.connection
                    .prepare_cached(
                        "SELECT domain, key, generation, user, granted_at, id FROM permissions \
                         WHERE domain = ?1 AND key = ?2 AND generation = ?3 AND user = ?4",
                    )?
                    .query_row((link.domain.0, key, generation, user), permission_of)
            })
            .await
    }

    async fn revoke(&self, id: PermissionId, link: &LinkId) -> PortResult<bool> {
        let link = link.clone();
        self.db
            .writer
            .write("revoke a permission", 1, move |work| {
                let revoked = work
                    .connection
                    .prepare_cached(
                        "DELETE FROM permissions WHERE id = ?1 AND domain = ?2 AND key = ?3",
                    )?
                    .execute((id.0.cast_signed(), link.domain.0, link.key.as_str()))?;
                Ok(revoked == 1)
            })
            .await
    }

    async fn permissions(
        &self,
        link: &LinkId,
        generation: u32,
        limit: usize,
    ) -> PortResult<Vec<Permission>> {
        let link = link.clone();
        self.db
            .readers
            .scan("list permissions", move |connection| {
                connection
                    .prepare_cached(
                        "SELECT domain, key, generation, user, granted_at, id FROM permissions \
                         WHERE domain = ?1 AND key = ?2 AND generation = ?3 ORDER BY id LIMIT ?4",
                    )?
                    .query_map(
                        (
                            link.domain.0,
                            link.key.as_str(),
                            generation,
                            rows_max(limit),
                        ),
                        permission_of,
                    )?
                    .collect()
            })
            .await
    }

    async fn may_follow(&self, user: OwnerId, link: &LinkId, generation: u32) -> PortResult<bool> {
        let user = user.0.cast_signed();
        self.db
            .readers
            .look_up("look for a permission", |connection| {
                connection
                    .prepare_cached(
                        "SELECT 1 FROM permissions \
                         WHERE domain = ?1 AND key = ?2 AND generation = ?3 AND user = ?4",
                    )?
                    .exists((link.domain.0, link.key.as_str(), generation, user))
            })
    }

    async fn revoke_released(&self, released: &[LinkChange]) -> PortResult<()> {
        const OP: &str = "revoke the permissions of released links";
        let released = released.to_vec();
        self.db
            .writer
            .write(OP, released.len(), move |work| {
                let mut revoke = work.connection.prepare_cached(
                    "DELETE FROM permissions WHERE domain = ?1 AND key = ?2 AND generation <= ?3",
                )?;
                for LinkChange { id, revision } in &released {
                    revoke.execute((id.domain.0, id.key.as_str(), revision.generation))?;
                }
                Ok(())
            })
            .await
    }
}

pub(super) fn permission_of(row: &Row<'_>) -> rusqlite::Result<Permission> {
    Ok(Permission {
        link: LinkId::new(DomainId(row.get(0)?), decode::key(row, 1)?),
        generation: row.get(2)?,
        user: OwnerId(row.get::<_, i64>(3)?.cast_unsigned()),
        granted_at: UnixMillis(row.get(4)?),
        id: PermissionId(row.get::<_, i64>(5)?.cast_unsigned()),
    })
}
