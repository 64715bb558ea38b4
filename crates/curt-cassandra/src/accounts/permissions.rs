use async_trait::async_trait;
use curt_core::ports::{LinkChange, Permission, PermissionId, Permissions};
use curt_core::{Clock, DomainId, Key, LinkId, OwnerId, PortResult, SystemClock, UnixMillis};
use scylla::DeserializeRow;
use scylla::value::CqlValue;

use super::CassandraAccounts;
use crate::failure::corrupt;
use crate::ordered::{POSITION_BYTES_MAX, Place, Span};
use crate::pause::pause;
use crate::statement::{Cql, Decided};
use crate::together::together;

pub(super) const GET: Cql = Cql::read(
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

const ENTRIES_AT_ONCE: usize = 200;

#[derive(DeserializeRow)]
struct PermissionRow {
    generation: Option<i64>,
    user: Option<i64>,
    last_id: Option<i64>,
    id: Option<i64>,
    granted_at: Option<i64>,
    revoked: Option<bool>,
}

/// Every permission that a link ever had, and the number that was given last.
#[derive(Default)]
pub(super) struct OfLink {
    last_id: Option<i64>,
    pub(super) permissions: Vec<Permission>,
}

#[async_trait]
impl Permissions for CassandraAccounts {
    async fn grant(
        &self,
        user: OwnerId,
        link: &LinkId,
        generation: u32,
        now: UnixMillis,
    ) -> PortResult<Permission> {
        const OP: &str = "grant a permission";
        let permission = Permission {
            id: PermissionId(0),
            user,
            link: link.clone(),
            generation,
            granted_at: now,
        };
        self.engine.change(OP, self.try_grant(OP, permission)).await
    }

    async fn revoke(&self, id: PermissionId, link: &LinkId) -> PortResult<bool> {
        const OP: &str = "revoke a permission";
        let revoke = async {
            let found = self.find_of_link(OP, GET.serial(), link).await?;
            let mut all = found.permissions.into_iter();
            match all.find(|permission| permission.id == id) {
                Some(permission) => self.revoke_one(OP, &permission).await,
                None => Ok(false),
            }
        };
        self.engine.change(OP, revoke).await
    }

    async fn permissions(
        &self,
        link: &LinkId,
        generation: u32,
        limit: usize,
    ) -> PortResult<Vec<Permission>> {
        const OP: &str = "list permissions";
        let found = self.find_of_link(OP, GET, link);
        let mut found = self.engine.list(OP, found).await?.permissions;
        found.retain(|permission| permission.generation == generation);
        found.sort_unstable_by_key(|permission| permission.id);
        found.truncate(limit);
        Ok(found)
    }

    async fn may_follow(&self, user: OwnerId, link: &LinkId, generation: u32) -> PortResult<bool> {
        const OP: &str = "look up a permission";
        let found = self.is_permitted(OP, user, link, generation);
        self.engine.look_up(OP, found).await
    }

    async fn revoke_released(&self, released: &[LinkChange]) -> PortResult<()> {
        const OP: &str = "revoke permissions of released links";
        let revoke = together(released.iter().map(|change| async move {
            let found = self.find_of_link(OP, GET.serial(), &change.id).await?;
            let old = found.permissions.into_iter();
            let old = old.filter(|one| one.generation <= change.revision.generation);
            for permission in old {
                self.revoke_one(OP, &permission).await?;
            }
            Ok(())
        }));
        self.engine.change_much(OP, revoke).await.map(drop)
    }
}

impl CassandraAccounts {
    pub(super) async fn find_of_link(
        &self,
        op: &'static str,
        cql: Cql,
        link: &LinkId,
    ) -> PortResult<OfLink> {
        let values = (
            &*self.namespace,
            i64::from(link.domain.0),
            link.key.as_str(),
        );
        let rows: Vec<PermissionRow> = self.engine.rows(op, cql, values).await?;
        let mut found = OfLink::default();
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

    async fn is_permitted(
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

    /// Gives the permission the next number of its link, in one transaction with the row, or finds the earlier one.
    async fn try_grant(&self, op: &'static str, wish: Permission) -> PortResult<Permission> {
        let _turn = self.permission_turn.lock().await;
        let place = user_place(&wish);
        self.lists.add(op, [place]).await?;
        loop {
            let found = self.find_of_link(op, GET.serial(), &wish.link).await?;
            let is_same =
                |one: &&Permission| one.user == wish.user && one.generation == wish.generation;
            // Also one that a lost answer of ours was about.
            if let Some(earlier) = found.permissions.iter().find(is_same) {
                return Ok(earlier.clone());
            }
            let now = SystemClock.now().0.saturating_mul(1_000);
            let id = now.max(found.last_id.unwrap_or(0) + 1);
            let granted = Permission {
                id: PermissionId(id.cast_unsigned()),
                ..wish.clone()
            };
            let statements = vec![
                (NUMBER, self.number_values(&granted, found.last_id)),
                (PUT, self.permission_values(&granted)),
            ];
            if let Decided::Applied = self.engine.decide_all(op, statements).await? {
                return Ok(granted);
            }
            pause().await;
        }
    }

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

    async fn revoke_one(&self, op: &'static str, permission: &Permission) -> PortResult<bool> {
        let link = &permission.link;
        let values = (
            &*self.namespace,
            i64::from(link.domain.0),
            link.key.as_str(),
            i64::from(permission.generation),
            permission.user.0.cast_signed(),
            permission.id.0.cast_signed(),
        );
        match self.engine.decide(op, REVOKE, values).await? {
            Decided::Applied => Ok(true),
            Decided::Refused => Ok(false),
            Decided::Unknown(error) => Err(error),
        }
    }

    /// Revokes everything that the user was permitted.
    pub(super) async fn revoke_permissions_of(
        &self,
        op: &'static str,
        user: OwnerId,
    ) -> PortResult<()> {
        let mut span = Span {
            list: user_list(user),
            buckets: (Vec::new(), vec![u8::MAX]),
            positions: (Vec::new(), vec![u8::MAX; POSITION_BYTES_MAX]),
            is_rising: true,
        };
        loop {
            let entries = self.lists.read(op, &span, ENTRIES_AT_ONCE).await?;
            for entry in &entries.entries {
                span.follow(&entry.place);
                let Some(link) = link_at(&entry.place.position) else {
                    continue;
                };
                let found = self.find_of_link(op, GET.serial(), &link).await?;
                for permission in found.permissions.iter().filter(|one| one.user == user) {
                    self.revoke_one(op, permission).await?;
                }
            }
            if entries.is_all {
                return Ok(());
            }
        }
    }
}

fn user_list(user: OwnerId) -> String {
    format!("permissions/user/{user}")
}

/// In the list of its user.
fn user_place(permission: &Permission) -> Place {
    let link = &permission.link;
    Place {
        list: user_list(permission.user),
        bucket: vec![0],
        position: [&link.domain.0.to_be_bytes()[..], link.key.as_bytes()].concat(),
    }
}

fn link_at(position: &[u8]) -> Option<LinkId> {
    let (domain, key) = position.split_first_chunk::<4>()?;
    let key = Key::parse(str::from_utf8(key).ok()?).ok()?;
    Some(LinkId::new(DomainId(u32::from_be_bytes(*domain)), key))
}
