use async_trait::async_trait;
use curt_core::ports::{Invite, Invites, OpenInvites};
use curt_core::{PortResult, UnixMillis};

use super::WideAccounts;
use crate::AccountCopies;
use crate::wide_column::{Decided, Mark, ReadMode, ScanPart, pause};

/// Parts of the table that are read for a list. Rows are kept by hash, in no order that a list could follow, and a day or
/// a little longer than they count; an index would cost every invitation a second write, for lists that are seldom read.
const PARTS_LISTED_MAX: usize = 16;

/// Invitations as an engine keeps them.
#[async_trait]
pub trait InviteRows: Send + Sync {
    async fn get_invite(
        &self,
        op: &'static str,
        secret_hash: &[u8; 32],
        mode: ReadMode,
    ) -> PortResult<Option<StoredInvite>>;

    /// Stores an invitation, if there is none with its secret.
    async fn insert_invite(
        &self,
        op: &'static str,
        invite: &Invite,
        mark: Mark,
    ) -> PortResult<Decided>;

    /// Takes an invitation that was not taken and has not expired.
    async fn take_invite(
        &self,
        op: &'static str,
        secret_hash: &[u8; 32],
        now: UnixMillis,
        mark: Mark,
    ) -> PortResult<Decided>;

    /// The secret hashes of some invitations behind `after`.
    async fn scan_invites(
        &self,
        op: &'static str,
        after: Option<&str>,
    ) -> PortResult<ScanPart<[u8; 32]>>;
}

/// An invitation as a row says.
#[derive(Clone, Debug)]
pub struct StoredInvite {
    pub invite: Invite,
    pub is_taken: bool,
    /// The call that made or took it.
    pub changed_by: Option<Mark>,
}

#[async_trait]
impl Invites for WideAccounts {
    async fn add_invite(&self, invite: &Invite) -> PortResult<bool> {
        const OP: &str = "add an invitation";
        self.deadlines
            .change(OP, self.try_add_invite(OP, invite))
            .await
    }

    async fn take_invite(
        &self,
        secret_hash: &[u8; 32],
        now: UnixMillis,
    ) -> PortResult<Option<Invite>> {
        const OP: &str = "take an invitation";
        self.deadlines
            .change(OP, self.try_take_invite(OP, secret_hash, now))
            .await
    }

    async fn invite(&self, secret_hash: &[u8; 32], now: UnixMillis) -> PortResult<Option<Invite>> {
        const OP: &str = "look up an invitation";
        let row = self
            .rows
            .get_invite(OP, secret_hash, ReadMode::Acknowledged);
        let row = self.deadlines.look_up(OP, row).await?;
        let row = row.filter(|row| !row.is_taken && row.invite.expires_at > now);
        Ok(row.map(|row| row.invite))
    }

    async fn invites(&self, now: UnixMillis, limit: usize) -> PortResult<OpenInvites> {
        let mut found = Vec::new();
        let mut after: Option<Box<str>> = None;
        for _ in 0..PARTS_LISTED_MAX {
            let (part, next) = self.all_invites(after.as_deref()).await?;
            found.extend(part.into_iter().filter(|invite| invite.expires_at > now));
            after = next;
            if after.is_none() {
                return Ok(OpenInvites::of(found, limit));
            }
        }
        let mut list = OpenInvites::of(found, limit);
        list.is_complete = false;
        Ok(list)
    }
}

impl WideAccounts {
    async fn try_add_invite(&self, op: &'static str, invite: &Invite) -> PortResult<bool> {
        let mark = Mark::random();
        loop {
            match self.rows.insert_invite(op, invite, mark).await? {
                Decided::Applied => return Ok(true),
                Decided::Refused | Decided::Unknown(_) => {}
            }
            let row = self
                .rows
                .get_invite(op, &invite.secret_hash, ReadMode::Decided);
            if let Some(row) = row.await? {
                return Ok(row.changed_by == Some(mark));
            }
            pause().await;
        }
    }

    async fn try_take_invite(
        &self,
        op: &'static str,
        secret_hash: &[u8; 32],
        now: UnixMillis,
    ) -> PortResult<Option<Invite>> {
        let mark = Mark::random();
        let taken = self.rows.take_invite(op, secret_hash, now, mark).await?;
        let doubt = match taken {
            Decided::Applied => None,
            Decided::Refused => return Ok(None),
            Decided::Unknown(error) => Some(error),
        };
        let row = self
            .rows
            .get_invite(op, secret_hash, ReadMode::Decided)
            .await?;
        match (row, doubt) {
            (Some(row), _) if row.is_taken && row.changed_by == Some(mark) => Ok(Some(row.invite)),
            (Some(row), Some(error)) if !row.is_taken => Err(error),
            _ => Ok(None),
        }
    }
}
