use async_trait::async_trait;
use curt_adapter_kit::wide_column::accounts::{InviteRows, StoredInvite};
use curt_adapter_kit::wide_column::{Decided, Mark, ReadMode, ScanPart};
use curt_core::account::Role;
use curt_core::ports::Invite;
use curt_core::{OwnerId, PortResult, UnixMillis};
use data_encoding::HEXLOWER;

use super::DynamoDbAccounts;
use crate::bulk::Scan;
use crate::failure::corrupt;
use crate::item::{EXPIRES, Item, Key, PARTITION, bytes, expiry, flag, number};
use crate::write::{Condition, Write};

const PREFIX: &str = "invite/";

fn invite_key(secret_hash: &[u8; 32]) -> Key {
    Key::item(format!("{PREFIX}{}", HEXLOWER.encode(secret_hash)))
}

fn hash_of(partition: &str) -> Option<[u8; 32]> {
    let hash = partition.strip_prefix(PREFIX)?;
    HEXLOWER.decode(hash.as_bytes()).ok()?.try_into().ok()
}

#[async_trait]
impl InviteRows for DynamoDbAccounts {
    async fn get_invite(
        &self,
        op: &'static str,
        secret_hash: &[u8; 32],
        _mode: ReadMode,
    ) -> PortResult<Option<StoredInvite>> {
        let Some(item) = self.engine.get(op, &invite_key(secret_hash)).await? else {
            return Ok(None);
        };
        let invite = Invite {
            secret_hash: *secret_hash,
            role: item.word("role", Role::from_stored)?,
            made_by: OwnerId(item.number("made_by")?.cast_unsigned()),
            created_at: UnixMillis(item.number("created_at")?),
            expires_at: UnixMillis(item.number("expires_at")?),
        };
        Ok(Some(StoredInvite {
            invite,
            is_taken: item.flag("taken"),
            changed_by: item.maybe_fixed("change_mark")?.map(Mark),
        }))
    }

    async fn insert_invite(
        &self,
        op: &'static str,
        invite: &Invite,
        mark: Mark,
    ) -> PortResult<Decided> {
        let attributes = vec![
            ("role", Some(number(invite.role as u8))),
            ("made_by", Some(number(invite.made_by.0.cast_signed()))),
            ("created_at", Some(number(invite.created_at.0))),
            ("expires_at", Some(number(invite.expires_at.0))),
            ("taken", Some(flag(false))),
            ("change_mark", Some(bytes(&mark.0))),
            (EXPIRES, Some(expiry(invite.expires_at))),
        ];
        let write = Write::put(invite_key(&invite.secret_hash), attributes);
        self.engine.decide(op, &write.when(Condition::Absent)).await
    }

    async fn take_invite(
        &self,
        op: &'static str,
        secret_hash: &[u8; 32],
        now: UnixMillis,
        mark: Mark,
    ) -> PortResult<Decided> {
        let changes = vec![
            ("taken", Some(flag(true))),
            ("change_mark", Some(bytes(&mark.0))),
        ];
        let write = Write::update(invite_key(secret_hash), changes)
            .when_equal("taken", flag(false))
            .when(Condition::Above("expires_at", number(now.0)));
        self.engine.decide(op, &write).await
    }

    async fn scan_invites(
        &self,
        op: &'static str,
        after: Option<&str>,
    ) -> PortResult<ScanPart<[u8; 32]>> {
        let part = self.engine.scan(op, Scan::keys(PREFIX), after).await?;
        let hash = |item: &Item| {
            let hash = hash_of(item.text(PARTITION)?);
            hash.ok_or_else(|| corrupt(op, "the hash of an invitation"))
        };
        let hashes: PortResult<_> = part.rows.iter().map(hash).collect();
        Ok(ScanPart {
            rows: hashes?,
            next: part.next,
        })
    }
}
