//! Permissions: a partition for each link, with an item for the number that was given last and one for each permission.

use async_trait::async_trait;
use curt_adapter_kit::wide_column::accounts::{LinkPermissions, PermissionRows};
use curt_adapter_kit::wide_column::{Decided, ReadMode, ScanPart};
use curt_core::ports::{Permission, PermissionId};
use curt_core::{LinkId, OwnerId, PortResult, UnixMillis};

use super::DynamoDbAccounts;
use crate::bulk::{Range, Scan};
use crate::failure::corrupt;
use crate::item::{Item, Key, PARTITION, Table, flag, number};
use crate::links::record::link_id;
use crate::write::{Condition, Write};

const PREFIX: &str = "permissions/";

fn partition(link: &LinkId) -> String {
    format!("{PREFIX}{}/{}", link.domain.0, link.key.as_str())
}

fn link_of(partition: &str) -> Option<LinkId> {
    let (domain, key) = partition.strip_prefix(PREFIX)?.split_once('/')?;
    link_id(domain, key)
}

fn number_key(link: &LinkId) -> Key {
    Key::item(partition(link))
}

fn permission_key(link: &LinkId, generation: u32, user: OwnerId) -> Key {
    let sort = [&generation.to_be_bytes()[..], &user.0.to_be_bytes()].concat();
    Key::sorted(Table::Items, partition(link), &sort)
}

/// `None`: was revoked.
fn permission_of(op: &'static str, link: &LinkId, item: &Item) -> PortResult<Option<Permission>> {
    if item.flag("revoked") {
        return Ok(None);
    }
    let sort = item.sort()?.split_first_chunk::<4>();
    let user = sort.and_then(|(_, user)| user.first_chunk::<8>());
    let (Some((generation, _)), Some(user)) = (sort, user) else {
        return Err(corrupt(op, "a permission"));
    };
    Ok(Some(Permission {
        id: PermissionId(item.number("id")?.cast_unsigned()),
        user: OwnerId(u64::from_be_bytes(*user)),
        link: link.clone(),
        generation: u32::from_be_bytes(*generation),
        granted_at: UnixMillis(item.number("granted_at")?),
    }))
}

#[async_trait]
impl PermissionRows for DynamoDbAccounts {
    async fn get_permissions(
        &self,
        op: &'static str,
        link: &LinkId,
        _mode: ReadMode,
    ) -> PortResult<LinkPermissions> {
        // Before the others, which are not read at one moment with it: so they are not older.
        let last = self.engine.get(op, &number_key(link)).await?;
        let last_id = last.map(|item| item.number("last_id")).transpose()?;
        let items = self.engine.query(op, Range::all(partition(link))).await?;
        let mut permissions = Vec::new();
        for item in &items {
            if !item.sort()?.is_empty() {
                permissions.extend(permission_of(op, link, item)?);
            }
        }
        Ok(LinkPermissions {
            last_id,
            permissions,
        })
    }

    async fn has_permission(
        &self,
        op: &'static str,
        user: OwnerId,
        link: &LinkId,
        generation: u32,
    ) -> PortResult<bool> {
        let key = permission_key(link, generation, user);
        let item = self.engine.get(op, &key).await?;
        Ok(item.is_some_and(|item| !item.flag("revoked")))
    }

    async fn insert_permission(
        &self,
        op: &'static str,
        permission: &Permission,
        seen: Option<i64>,
    ) -> PortResult<Decided> {
        let Permission {
            link, generation, ..
        } = permission;
        let id = number(permission.id.0.cast_signed());
        let condition = match seen {
            None => Condition::Absent,
            Some(seen) => Condition::Equals("last_id", number(seen)),
        };
        let count = Write::put(number_key(link), vec![("last_id", Some(id.clone()))]);
        let attributes = vec![
            ("id", Some(id)),
            ("granted_at", Some(number(permission.granted_at.0))),
            ("revoked", Some(flag(false))),
        ];
        let key = permission_key(link, *generation, permission.user);
        let writes = [count.when(condition), Write::put(key, attributes)];
        self.engine.decide_all(op, &writes).await
    }

    async fn revoke_permission(
        &self,
        op: &'static str,
        permission: &Permission,
    ) -> PortResult<Decided> {
        let Permission {
            link, generation, ..
        } = permission;
        let key = permission_key(link, *generation, permission.user);
        let write = Write::update(key, vec![("revoked", Some(flag(true)))])
            .when_equal("id", number(permission.id.0.cast_signed()))
            .when_equal("revoked", flag(false));
        self.engine.decide(op, &write).await
    }

    async fn scan_permissions(
        &self,
        op: &'static str,
        after: Option<&str>,
    ) -> PortResult<ScanPart<LinkId>> {
        let part = self.engine.scan(op, Scan::keys(PREFIX), after).await?;
        let mut links = Vec::new();
        for item in &part.rows {
            // Every link that has any has the item of the number that was given last.
            if item.sort()?.is_empty() {
                let link = link_of(item.text(PARTITION)?);
                links.push(link.ok_or_else(|| corrupt(op, "the link of a permission"))?);
            }
        }
        Ok(ScanPart {
            rows: links,
            next: part.next,
        })
    }
}
