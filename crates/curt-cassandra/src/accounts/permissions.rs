use async_trait::async_trait;
use curt_adapter_kit::wide_column::accounts::{LinkPermissions, PermissionRows};
use curt_adapter_kit::wide_column::{Decided, ReadMode, ScanPart};
use curt_core::ports::{Permission, PermissionId};
use curt_core::{LinkId, OwnerId, PortResult, UnixMillis};
use scylla::DeserializeRow;
use scylla::value::CqlValue;

use super::{CassandraAccounts, SCANNED_AT_ONCE};
use crate::failure::corrupt;
use crate::links::link_id;
use crate::scan::HashedRow;
use crate::statement::Cql;

const GET: Cql = Cql::read(
    "SELECT generation, user, last_id, id, granted_at, revoked FROM KEYSPACE.permissions \
     WHERE namespace = ? AND domain = ? AND key = ?",
);
const FIND: Cql = Cql::read(
    "SELECT id, granted_at, revoked FROM KEYSPACE.permissions \
     WHERE namespace = ? AND domain = ? AND key = ? AND generation = ? AND user = ?",
);
const NUMBER: Cql = Cql::conditional(
    "UPDATE KEYSPACE.permissions SET last_id = ? WHERE namespace = ? AND domain = ? AND key = ? IF last_id = ?",
);
const PUT: Cql = Cql::conditional(
    "UPDATE KEYSPACE.permissions SET id = ?, granted_at = ?, revoked = false \
     WHERE namespace = ? AND domain = ? AND key = ? AND generation = ? AND user = ?",
);
const REVOKE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.permissions SET revoked = true \
     WHERE namespace = ? AND domain = ? AND key = ? AND generation = ? AND user = ? IF id = ? AND revoked = false",
);

const SCAN: Cql = Cql::read(
    "SELECT DISTINCT token(namespace, domain, key) AS hash, namespace, domain, key FROM KEYSPACE.permissions \
     WHERE token(namespace, domain, key) > ? AND token(namespace, domain, key) <= ? LIMIT ?",
);

#[derive(DeserializeRow)]
struct PermittedLink {
    hash: i64,
    namespace: String,
    domain: i64,
    key: String,
}

impl HashedRow for PermittedLink {
    fn hash(&self) -> i64 {
        self.hash
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }
}

#[derive(DeserializeRow)]
struct PermissionRow {
    generation: Option<i64>,
    user: Option<i64>,
    last_id: Option<i64>,
    id: Option<i64>,
    granted_at: Option<i64>,
    revoked: Option<bool>,
}

#[async_trait]
impl PermissionRows for CassandraAccounts {
    async fn get_permissions(
        &self,
        op: &'static str,
        link: &LinkId,
        mode: ReadMode,
    ) -> PortResult<LinkPermissions> {
        let (domain, key) = (i64::from(link.domain.0), link.key.as_str());
        let values = (&*self.namespace, domain, key);
        let rows: Vec<PermissionRow> = self.engine.rows(op, GET.at(mode), values).await?;
        let mut found = LinkPermissions::default();
        for row in rows {
            found.last_id = row.last_id;
            let (Some(generation), Some(user), Some(id), Some(granted_at), Some(false)) = (
                row.generation,
                row.user,
                row.id,
                row.granted_at,
                row.revoked,
            ) else {
                continue;
            };
            found.permissions.push(Permission {
                id: PermissionId(id.cast_unsigned()),
                user: OwnerId(user.cast_unsigned()),
                link: link.clone(),
                generation: u32::try_from(generation).map_err(|_| corrupt(op, generation))?,
                granted_at: UnixMillis(granted_at),
            });
        }
        Ok(found)
    }

    async fn has_permission(
        &self,
        op: &'static str,
        user: OwnerId,
        link: &LinkId,
        generation: u32,
    ) -> PortResult<bool> {
        let values = (
            &*self.namespace,
            i64::from(link.domain.0),
            link.key.as_str(),
            i64::from(generation),
            user.0.cast_signed(),
        );
        let row: Option<(Option<i64>, Option<i64>, Option<bool>)> =
            self.engine.first(op, FIND, values).await?;
        Ok(row.is_some_and(|(id, _, revoked)| id.is_some() && revoked == Some(false)))
    }

    /// In one transaction with the number.
    async fn insert_permission(
        &self,
        op: &'static str,
        permission: &Permission,
        seen: Option<i64>,
    ) -> PortResult<Decided> {
        let statements = vec![
            (NUMBER, self.number_values(permission, seen)),
            (PUT, self.permission_values(permission)),
        ];
        self.engine.decide_all(op, statements).await
    }

    async fn revoke_permission(
        &self,
        op: &'static str,
        permission: &Permission,
    ) -> PortResult<Decided> {
        let link = &permission.link;
        let values = (
            &*self.namespace,
            i64::from(link.domain.0),
            link.key.as_str(),
            i64::from(permission.generation),
            permission.user.0.cast_signed(),
            permission.id.0.cast_signed(),
        );
        self.engine.decide(op, REVOKE, values).await
    }

    async fn scan_permissions(
        &self,
        op: &'static str,
        after: Option<&str>,
    ) -> PortResult<ScanPart<LinkId>> {
        let scan = self
            .engine
            .scan(op, SCAN, &self.namespace, after, SCANNED_AT_ONCE);
        let part: ScanPart<PermittedLink> = scan.await?;
        let ids = part
            .rows
            .iter()
            .map(|row| link_id(op, row.domain, &row.key));
        let ids: PortResult<_> = ids.collect();
        Ok(ScanPart {
            rows: ids?,
            next: part.next,
        })
    }
}

impl CassandraAccounts {
    fn number_values(&self, granted: &Permission, last: Option<i64>) -> Vec<Option<CqlValue>> {
        let link = &granted.link;
        vec![
            Some(CqlValue::BigInt(granted.id.0.cast_signed())),
            Some(CqlValue::Text((&*self.namespace).into())),
            Some(CqlValue::BigInt(link.domain.0.into())),
            Some(CqlValue::Text(link.key.as_str().into())),
            last.map(CqlValue::BigInt),
        ]
    }

    fn permission_values(&self, granted: &Permission) -> Vec<Option<CqlValue>> {
        let link = &granted.link;
        vec![
            Some(CqlValue::BigInt(granted.id.0.cast_signed())),
            Some(CqlValue::BigInt(granted.granted_at.0)),
            Some(CqlValue::Text((&*self.namespace).into())),
            Some(CqlValue::BigInt(link.domain.0.into())),
            Some(CqlValue::Text(link.key.as_str().into())),
            Some(CqlValue::BigInt(granted.generation.into())),
            Some(CqlValue::BigInt(granted.user.0.cast_signed())),
        ]
    }
}
