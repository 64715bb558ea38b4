//! Browsers that are known to an account, because somebody signed in to it there before.
//!
//! A browser keeps a token that only this server can have made: its proof is keyed by the hash of the account's password.
//! So nothing is stored for it, every instance knows it, and a new password makes all of them worthless.

use curt_core::{PortResult, User};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{UserOperations, UserRef, find};
use crate::token;

impl UserOperations {
    /// The id of the browser, if it is known to the account of that email: by its token, or by a session of the
    /// account that goes on.
    pub async fn known_browser(
        &self,
        email: &str,
        browser: Option<&str>,
        session: Option<&str>,
    ) -> PortResult<Option<String>> {
        if browser.is_none() && session.is_none() {
            return Ok(None);
        }
        let Some(user) = find(&*self.accounts, UserRef::Email(email)).await? else {
            return Ok(None);
        };
        if let Some(id) = browser.and_then(|token| browser_id_of_token(&user, token)) {
            return Ok(Some(id.to_owned()));
        }
        let Some(session) = session else {
            return Ok(None);
        };
        let principal = self.authenticate_session(session).await?;
        let own = principal.filter(|principal| principal.user == user.id);
        Ok(own.and_then(|own| own.session().map(str::to_owned)))
    }
}

/// A token for a browser in which somebody has just signed in.
pub(super) fn token_for(user: &User) -> Option<String> {
    let hash = user.password_hash.as_deref()?;
    let token = token::BROWSER.generate_with(|id| proof(user, hash, id));
    Some(token.reveal().to_owned())
}

/// The id of the browser whose token it is, if it was made for this user under the password of today.
fn browser_id_of_token<'t>(user: &User, token: &'t str) -> Option<&'t str> {
    let (id, shown) = token::BROWSER.split(token)?;
    let hash = user.password_hash.as_deref()?;
    let expected = proof(user, hash, id);
    bool::from(expected.as_bytes().ct_eq(shown.as_bytes())).then_some(id)
}

/// A keyed hash of browser and user, nested so that it cannot be extended.
fn proof(user: &User, password_hash: &str, id: &str) -> String {
    let key = Sha256::new()
        .chain_update(b"curt browser\0")
        .chain_update(password_hash)
        .finalize();
    let inner = Sha256::new()
        .chain_update(key)
        .chain_update(user.id.0.to_be_bytes())
        .chain_update(id)
        .finalize();
    let outer = Sha256::new()
        .chain_update(key)
        .chain_update(inner)
        .finalize();
    outer[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use curt_core::{Allowance, OwnerId, Role, UnixMillis};

    use super::*;

    fn user(id: u64, password_hash: Option<&str>) -> User {
        User {
            id: OwnerId(id),
            first_name: "Ann".into(),
            middle_name: None,
            last_name: "".into(),
            email: "ann@example.com".into(),
            password_hash: password_hash.map(Into::into),
            role: Role::Member,
            disabled_at: None,
            allowance: Allowance::default(),
            created_at: UnixMillis(0),
            updated_at: UnixMillis(0),
        }
    }

    #[test]
    fn a_browser_is_known_to_its_account_until_the_password_changes() {
        let ann = user(1, Some("$argon2id$one"));
        let token = token_for(&ann).unwrap();
        let id = browser_id_of_token(&ann, &token).unwrap();
        assert!(token.starts_with(&format!("curtb_{id}_")));
        assert_ne!(token_for(&ann), Some(token.clone()), "each its own");
        for other in [
            user(2, Some("$argon2id$one")),
            user(1, Some("$argon2id$two")),
            user(1, None),
        ] {
            assert_eq!(browser_id_of_token(&other, &token), None);
        }
        let last = if token.ends_with('0') { "1" } else { "0" };
        let forged = format!("{}{last}", &token[..token.len() - 1]);
        for text in ["", "curtb_", &forged, &token.replace("curtb", "curts")] {
            assert_eq!(browser_id_of_token(&ann, text), None, "{text}");
        }
        assert_eq!(token_for(&user(1, None)), None);
    }
}
