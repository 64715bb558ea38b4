//! The end of users. An administrator may go while there is another one, and of two who remove each other one must stay:
//! removals of administrators are decided one after the other, in a row of their own.

use curt_core::account::Role;
use curt_core::ports::UserRemoval;
use curt_core::{OwnerId, PortResult};

use super::WideAccounts;
use super::users::ADMINS;
use crate::wide_column::{Mark, ReadMode, pause};

impl WideAccounts {
    pub(super) async fn try_remove_user(
        &self,
        op: &'static str,
        id: OwnerId,
    ) -> PortResult<UserRemoval> {
        let _turn = self.user_turn.lock().await;
        loop {
            let Some(user) = self.find_user(op, id, ReadMode::Decided).await? else {
                return Ok(UserRemoval::Absent);
            };
            if user.role != Role::Admin {
                return Ok(match self.remove_rows(op, id).await? {
                    true => UserRemoval::Removed,
                    false => UserRemoval::Absent,
                });
            }
            let state = self.rows.get_removal(op).await?;
            if let Some((version, pending)) =
                state.and_then(|state| Some((state.version, state.pending?)))
            {
                // Whoever began it may be gone: it is done first, so that what is counted below is what is left.
                self.finish_removal(op, version, pending).await?;
                continue;
            }
            let admins = self.users_in(op, ADMINS, None, usize::MAX).await?;
            if !admins.iter().any(|other| other.id != id) {
                return Ok(UserRemoval::LastAdmin);
            }
            let version = state.map(|state| state.version);
            // If it was begun and nobody knows, the next removal finishes it.
            let begun = self.rows.set_removal(op, version, Some(id)).await?;
            if begun.into_result()? {
                let version = version.unwrap_or(0) + 1;
                self.finish_removal(op, version, id).await?;
                return Ok(UserRemoval::Removed);
            }
            pause().await;
        }
    }

    async fn finish_removal(&self, op: &'static str, version: i64, id: OwnerId) -> PortResult<()> {
        self.remove_rows(op, id).await?;
        let done = self.rows.set_removal(op, Some(version), None);
        done.await.map(drop)
    }

    /// Removes what is the user's, the user last, and says whether this call did: what a crash leaves can be removed again.
    async fn remove_rows(&self, op: &'static str, id: OwnerId) -> PortResult<bool> {
        let email = self.find_user(op, id, ReadMode::Decided).await?;
        self.revoke_permissions_of(op, id).await?;
        self.end_sessions_of(op, id, None).await?;
        let removed = self.rows.remove_user(op, id, Mark::random()).await?;
        let is_removed = removed.into_result()?;
        if let Some(user) = email {
            self.free_email(op, &user.email, id).await?;
        }
        Ok(is_removed)
    }
}
