use async_trait::async_trait;
use curt_adapter_kit::wide_column::accounts::{InviteRows, StoredInvite};
use curt_adapter_kit::wide_column::{Decided, Mark, ReadMode, ScanPart};
use curt_core::account::Role;
use curt_core::ports::Invite;
use curt_core::{OwnerId, PortResult, UnixMillis};
use scylla::DeserializeRow;

use super::{CassandraAccounts, SCANNED_AT_ONCE, mark_of};
use crate::failure::corrupt;
use crate::scan::HashedRow;
use crate::statement::Cql;

const GET: Cql = Cql::read(
    "SELECT role, made_by, created_at, expires_at, taken, change_mark FROM KEYSPACE.invites \
     WHERE namespace = ? AND secret_hash = ?",
);
const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.invites (namespace, secret_hash, role, made_by, created_at, expires_at, taken, change_mark) \
     VALUES (?, ?, ?, ?, ?, ?, false, ?) IF NOT EXISTS",
);
const TAKE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.invites SET taken = true, change_mark = ? WHERE namespace = ? AND secret_hash = ? \
     IF taken = false AND expires_at > ?",
);

const SCAN: Cql = Cql::read(
    "SELECT token(namespace, secret_hash) AS hash, namespace, secret_hash FROM KEYSPACE.invites \
     WHERE token(namespace, secret_hash) > ? AND token(namespace, secret_hash) <= ? LIMIT ?",
);

#[derive(DeserializeRow)]
struct ScannedInvite {
    hash: i64,
    namespace: String,
    secret_hash: Vec<u8>,
}

impl HashedRow for ScannedInvite {
    fn hash(&self) -> i64 {
        self.hash
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }
}

#[derive(DeserializeRow)]
struct InviteRow {
    role: i8,
    made_by: i64,
    created_at: i64,
    expires_at: i64,
    taken: bool,
    change_mark: Vec<u8>,
}

#[async_trait]
impl InviteRows for CassandraAccounts {
    async fn get_invite(
        &self,
        op: &'static str,
        secret_hash: &[u8; 32],
        mode: ReadMode,
    ) -> PortResult<Option<StoredInvite>> {
        let values = (&*self.namespace, &secret_hash[..]);
        let row: Option<InviteRow> = self.engine.first(op, GET.at(mode), values).await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let role = Role::from_stored(row.role.cast_unsigned());
        let invite = Invite {
            secret_hash: *secret_hash,
            role: role.ok_or_else(|| corrupt(op, row.role))?,
            made_by: OwnerId(row.made_by.cast_unsigned()),
            created_at: UnixMillis(row.created_at),
            expires_at: UnixMillis(row.expires_at),
        };
        Ok(Some(StoredInvite {
            invite,
            is_taken: row.taken,
            changed_by: mark_of(row.change_mark),
        }))
    }

    async fn insert_invite(
        &self,
        op: &'static str,
        invite: &Invite,
        mark: Mark,
    ) -> PortResult<Decided> {
        let values = (
            &*self.namespace,
            &invite.secret_hash[..],
            invite.role as i8,
            invite.made_by.0.cast_signed(),
            invite.created_at.0,
            invite.expires_at.0,
            &mark.0[..],
        );
        self.engine.decide(op, INSERT, values).await
    }

    async fn take_invite(
        &self,
        op: &'static str,
        secret_hash: &[u8; 32],
        now: UnixMillis,
        mark: Mark,
    ) -> PortResult<Decided> {
        let values = (&mark.0[..], &*self.namespace, &secret_hash[..], now.0);
        self.engine.decide(op, TAKE, values).await
    }

    async fn scan_invites(
        &self,
        op: &'static str,
        after: Option<&str>,
    ) -> PortResult<ScanPart<[u8; 32]>> {
        let scan = self
            .engine
            .scan(op, SCAN, &self.namespace, after, SCANNED_AT_ONCE);
        let part: ScanPart<ScannedInvite> = scan.await?;
        let hashes = part.rows.into_iter().map(|row| row.secret_hash.try_into());
        let hashes: Result<_, _> = hashes.collect();
        Ok(ScanPart {
            rows: hashes.map_err(|_| corrupt(op, "the hash of an invitation"))?,
            next: part.next,
        })
    }
}
