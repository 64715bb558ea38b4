//! Who is signed in, as pages show them, and how their forms prove that a page of ours made them.

use curt_accounts::{Principal, UserRef};
use curt_core::{Scope, User};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::form::Form;
use crate::caller::Caller;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;

/// Somebody who is signed in.
pub(super) struct Visitor {
    pub(super) principal: Principal,
    pub(super) user: User,
    /// The hidden field of every form that acts for them.
    pub(super) csrf: String,
}

impl Visitor {
    pub(super) async fn of(app: &App, caller: &Caller) -> Result<Option<Self>, Problem> {
        let principal = caller.session(app).await?;
        let (Some(principal), Some(token)) = (principal, caller.session_token()) else {
            return Ok(None);
        };
        let user = app.accounts.users.get(UserRef::Id(principal.user)).await?;
        Ok(Some(Self {
            principal,
            user,
            csrf: form_token(token),
        }))
    }

    /// Refuses a form that none of our pages made for this session.
    pub(super) fn check(&self, form: &Form) -> Result<(), Problem> {
        let shown = form.secret("csrf").as_bytes();
        if bool::from(self.csrf.as_bytes().ct_eq(shown)) {
            Ok(())
        } else {
            Err(Problem::new(ProblemCode::CrossSite))
        }
    }

    pub(super) fn may(&self, scope: Scope) -> bool {
        self.principal.may(scope)
    }

    /// What a page calls them.
    pub(super) fn name(&self) -> String {
        let User {
            first_name,
            last_name,
            ..
        } = &self.user;
        format!("{first_name} {last_name}").trim_end().to_owned()
    }
}

/// Only whoever holds the session's token can know this, and it does not tell the token.
fn form_token(session_token: &str) -> String {
    let digest = Sha256::new()
        .chain_update(b"curt form token\0")
        .chain_update(session_token)
        .finalize();
    HEXLOWER.encode(&digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_has_a_token_of_its_own_that_does_not_hold_it() {
        let tokens = [form_token("curts_a_b"), form_token("curts_a_c")];
        assert_ne!(tokens[0], tokens[1]);
        assert!(tokens.iter().all(|token| token.len() == 64));
    }
}
