use async_trait::async_trait;
use curt_core::ports::{LinkChange, Permission, PermissionId, Permissions};
use curt_core::{LinkId, OwnerId, PortResult, UnixMillis};
use tokio_postgres::Row;

use super::PostgresAccounts;
use crate::decode::{corrupt, link_id, owner, rows_max, small, time};
use crate::engine::{Value, column};

// Columns are in the order of `permission_of`.
/// Changes nothing in one that is there, and returns it in the same step: nobody can take it back in between.
const GRANT: &str = "INSERT INTO permissions AS p (domain, key, generation, user_id, granted_at) VALUES ($1, $2, $3, \
     $4, $5) ON CONFLICT (domain, key, generation, user_id) DO UPDATE SET granted_at = p.granted_at RETURNING \
     domain, key, generation, user_id, granted_at, id";
const REVOKE: &str =
    "DELETE FROM permissions WHERE id = $1 AND domain = $2 AND key = $3 RETURNING 1";
const LIST: &str = "SELECT domain, key, generation, user_id, granted_at, id FROM permissions WHERE domain = $1 AND \
     key = $2 AND generation = $3 ORDER BY id LIMIT $4";
const FIND: &str = "SELECT 1 FROM permissions \
     WHERE domain = $1 AND key = $2 AND generation = $3 AND user_id = $4";
const REVOKE_RELEASED: &str = "DELETE FROM permissions AS p \
     USING unnest($1::bigint[], $2::text[], $3::bigint[]) AS released (domain, key, generation) \
     WHERE p.domain = released.domain AND p.key = released.key AND p.generation <= released.generation";

#[async_trait]
impl Permissions for PostgresAccounts {
    async fn grant(
        &self,
        user: OwnerId,
        link: &LinkId,
        generation: u32,
        now: UnixMillis,
    ) -> PortResult<Permission> {
        const OP: &str = "grant a permission";
        let values: [Value<'_>; 5] = [
            &i64::from(link.domain.0),
            &link.key.as_str(),
            &i64::from(generation),
            &user.0.cast_signed(),
            &now.0,
        ];
        let engine = self.tables.engine().await?;
        let rows = engine.write(OP, GRANT, &values).await?;
        let row = rows.first().ok_or_else(|| corrupt(OP, "no permission"))?;
        permission_of(OP, row)
    }

    async fn revoke(&self, id: PermissionId, link: &LinkId) -> PortResult<bool> {
        let values: [Value<'_>; 3] = [
            &id.0.cast_signed(),
            &i64::from(link.domain.0),
            &link.key.as_str(),
        ];
        let engine = self.tables.engine().await?;
        let rows = engine.write("revoke a permission", REVOKE, &values).await?;
        Ok(!rows.is_empty())
    }

    async fn permissions(
        &self,
        link: &LinkId,
        generation: u32,
        limit: usize,
    ) -> PortResult<Vec<Permission>> {
        const OP: &str = "list permissions";
        let values: [Value<'_>; 4] = [
            &i64::from(link.domain.0),
            &link.key.as_str(),
            &i64::from(generation),
            &rows_max(limit),
        ];
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP, LIST, &values).await?;
        rows.iter().map(|row| permission_of(OP, row)).collect()
    }

    async fn may_follow(&self, user: OwnerId, link: &LinkId, generation: u32) -> PortResult<bool> {
        let values: [Value<'_>; 4] = [
            &i64::from(link.domain.0),
            &link.key.as_str(),
            &i64::from(generation),
            &user.0.cast_signed(),
        ];
        let engine = self.tables.lookups().await?;
        let row = engine
            .look_up("look for a permission", FIND, &values)
            .await?;
        Ok(row.is_some())
    }

    async fn revoke_released(&self, released: &[LinkChange]) -> PortResult<()> {
        const OP: &str = "revoke the permissions of released links";
        let domains: Vec<i64> = released.iter().map(|one| one.id.domain.0.into()).collect();
        let keys: Vec<&str> = released.iter().map(|one| one.id.key.as_str()).collect();
        let generations: Vec<i64> = released
            .iter()
            .map(|one| one.revision.generation.into())
            .collect();
        let values: [Value<'_>; 3] = [&domains, &keys, &generations];
        let engine = self.tables.engine().await?;
        engine.write(OP, REVOKE_RELEASED, &values).await.map(drop)
    }
}

pub(super) fn permission_of(op: &'static str, row: &Row) -> PortResult<Permission> {
    Ok(Permission {
        link: link_id(op, row)?,
        generation: small(op, column(op, row, 2)?)?,
        user: owner(op, row, 3)?,
        granted_at: time(op, row, 4)?,
        id: PermissionId(column::<i64>(op, row, 5)?.cast_unsigned()),
    })
}
