//! The end of an account: its links go to somebody else or are deleted, its credentials end, and then it is gone.

use curt_accounts::{AccountError, Origin, UserRef};
use curt_core::OwnerId;

use crate::error::LinkError;
use crate::manage::LinksOfLeaver;
use crate::operations::LinkOperations;

/// Why a user is still there.
#[derive(Debug, thiserror::Error)]
pub enum UserRemovalError {
    #[error("the user has links: name who gets them, or have them deleted")]
    Undecided,
    #[error("the links go to another user, who is not disabled")]
    NoHeir,
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl LinkOperations<'_> {
    /// Removes a user, and returns how many links were handed over or deleted. Without a word about links the user must
    /// have none.
    ///
    /// The account is kept out first and goes last: whatever a crash leaves is a disabled user, for whom the same call
    /// goes on where it ended. To be run to completion, whoever asked for it.
    pub async fn remove_user(
        self,
        id: OwnerId,
        links: Option<LinksOfLeaver>,
        origin: Origin,
    ) -> Result<u64, UserRemovalError> {
        let users = &self.accounts.users;
        let user = users.get(UserRef::Id(id)).await?;
        self.check_links(id, links).await?;
        users.refuse_last_admin(&user).await?;
        users.disable(UserRef::Id(id), origin).await?;
        self.accounts.api_keys.revoke_all(id, origin).await?;
        let cleared = self.links.clear_out(id, links).await?;
        // One that was being made while the account was kept out would have no owner.
        if self.links.owns_any(id).await? {
            return Err(UserRemovalError::Undecided);
        }
        users.remove(&user, origin).await?;
        Ok(cleared)
    }

    async fn check_links(
        self,
        id: OwnerId,
        links: Option<LinksOfLeaver>,
    ) -> Result<(), UserRemovalError> {
        match links {
            Some(LinksOfLeaver::Delete) => Ok(()),
            Some(LinksOfLeaver::HandOver(heir)) => {
                let heir = self.accounts.users.get(UserRef::Id(heir)).await;
                match heir {
                    Ok(heir) if heir.id != id && heir.disabled_at.is_none() => Ok(()),
                    Ok(_) | Err(AccountError::NotFound) => Err(UserRemovalError::NoHeir),
                    Err(other) => Err(other.into()),
                }
            }
            None if self.links.owns_any(id).await? => Err(UserRemovalError::Undecided),
            None => Ok(()),
        }
    }
}
