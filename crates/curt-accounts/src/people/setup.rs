//! The first account. Whoever started the server proves it with a token that was printed there; once anybody can sign
//! in, the door is closed for ever, whatever is shown.

use std::sync::{Mutex, MutexGuard, PoisonError};

use curt_core::names::audit;
use curt_core::{PortResult, User};

use super::People;
use super::admit::{self, Admitted, NewPerson};
use crate::audit::Origin;
use crate::error::AccountError;
use crate::token;

/// The hash of the token that opens the setup, in this process's memory only.
#[derive(Default)]
pub(super) struct Setup(Mutex<Option<[u8; 32]>>);

impl Setup {
    fn open(&self) -> String {
        let token = token::secret();
        *self.locked() = Some(token::hash(&token));
        token
    }

    fn is_opened_by(&self, token: &str) -> bool {
        token::matches(self.locked().as_ref(), &token::hash(token))
    }

    fn locked(&self) -> MutexGuard<'_, Option<[u8; 32]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl People {
    /// Opens the setup and returns its token, if nobody can sign in. An earlier token opens nothing any more. Makes the
    /// operator's account if there is none: of all who then come with a token at once, one changes that row.
    pub async fn setup_token(&self) -> Result<Option<String>, AccountError> {
        if self.accounts.anybody_can_sign_in().await? {
            return Ok(None);
        }
        self.ensure_operator().await?;
        Ok(Some(self.setup.open()))
    }

    /// Whether [`set_up`](Self::set_up) would look at a form that comes with this token.
    pub async fn is_setup_open(&self, token: &str) -> PortResult<bool> {
        Ok(self.setup.is_opened_by(token) && !self.accounts.anybody_can_sign_in().await?)
    }

    /// Makes the first administrator out of the operator's account.
    pub async fn set_up(
        &self,
        token: &str,
        new: &NewPerson,
        origin: Origin,
    ) -> Result<User, AccountError> {
        if !self.setup.is_opened_by(token) {
            return Err(AccountError::SetupClosed);
        }
        let user = self.make_first(new, origin).await?;
        self.audit
            .record(origin.by(user.id), audit::SETUP_DONE, &user.email)
            .await;
        Ok(user)
    }

    async fn make_first(&self, new: &NewPerson, origin: Origin) -> Result<User, AccountError> {
        if self.accounts.anybody_can_sign_in().await? {
            return Err(AccountError::SetupClosed);
        }
        let person = admit::person(new)?;
        let hash = self.passwords.hash(origin.into(), &new.password).await?;
        let operator = self.operator().await?;
        let operator = operator.ok_or(AccountError::SetupClosed)?;
        let (_, user) = self
            .change(operator.id, |user| {
                if user.password_hash.is_some() {
                    return Err(AccountError::SetupClosed);
                }
                fill_in(user, &person);
                user.password_hash = Some(hash.clone());
                Ok(())
            })
            .await?;
        self.credentials.forget_all();
        Ok(user)
    }
}

fn fill_in(user: &mut User, person: &Admitted) {
    user.first_name = person.first_name.clone();
    user.middle_name = person.middle_name.clone();
    user.last_name = person.last_name.clone();
    user.email = person.email.clone();
}
