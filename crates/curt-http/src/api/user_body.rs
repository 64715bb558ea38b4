//! Users as JSON: what clients send and what they get.

use curt_accounts::{NewUser, UserEdit};
use curt_core::limits::{EMAIL_BYTES_MAX, NAME_BYTES_MAX};
use curt_core::{Role, User};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::{Object, present};
use super::names::{RateBody, RoleName, UserId, rule};
use super::secret::Secret;
use super::time::Rfc3339;
use crate::problem::Problem;

// The schemas below can hold only literal numbers.
const _: () = assert!(EMAIL_BYTES_MAX == 254 && NAME_BYTES_MAX == 100);

/// Somebody who wants an account.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewUser)]
pub(crate) struct NewUserBody {
    /// At most 100 bytes, as the other names.
    #[schema(min_length = 1, max_length = 100, example = "Ada")]
    first_name: String,
    #[schema(max_length = 100)]
    middle_name: Option<String>,
    #[schema(max_length = 100, example = "Lovelace")]
    last_name: String,
    /// Nobody else may have it, in upper or lower case.
    #[schema(max_length = 254, format = "email", example = "ada@example.com")]
    pub(crate) email: String,
    /// At least 8 characters.
    password: Secret,
    /// The code of an invitation, where one is needed.
    #[schema(max_length = 64)]
    pub(crate) invite: Option<String>,
    /// `member` unless said otherwise; only for administrators.
    pub(crate) role: Option<RoleName>,
}

impl NewUserBody {
    pub(crate) fn into_new_user(self) -> NewUser {
        NewUser {
            first_name: self.first_name,
            middle_name: self.middle_name,
            last_name: self.last_name,
            email: self.email,
            password: self.password.into_inner(),
        }
    }
}

/// Changes to a user. A field that is absent stays as it is; `null` clears it.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UserChanges)]
pub(crate) struct EditUserBody {
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 100, example = "Ada")]
    first_name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, max_length = 100)]
    middle_name: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = String, required = false, max_length = 100, example = "King")]
    last_name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = String, required = false, max_length = 254, format = "email", example = "ada@example.com")]
    pub(crate) email: Option<String>,
    /// Your password; needed for a new email of your own.
    pub(crate) current_password: Option<Secret>,
    /// For administrators, and not for themselves. Ends the user's sessions.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = RoleName, required = false)]
    pub(crate) role: Option<RoleName>,
    /// For administrators, and not for themselves. `true` ends the user's sessions, and their API keys count for
    /// nothing.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    pub(crate) disabled: Option<bool>,
    /// How many links the user may make; for administrators. `null`: the server's default.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<RateBody>)]
    creations: Option<Option<Object<RateBody>>>,
    /// How often the user's links may be followed; for administrators. `null`: the server's default.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<RateBody>)]
    pub(crate) redirections: Option<Option<Object<RateBody>>>,
}

impl EditUserBody {
    /// Whether anything is asked for that only administrators may do.
    pub(crate) fn is_for_administrators(&self) -> bool {
        self.role.is_some()
            || self.disabled.is_some()
            || self.creations.is_some()
            || self.redirections.is_some()
    }

    /// Everything but `disabled`.
    pub(crate) fn into_edit(self) -> Result<UserEdit, Problem> {
        let creations = self.creations.map(|rate| rule("creations", rate));
        let redirections = self.redirections.map(|rate| rule("redirections", rate));
        Ok(UserEdit {
            first_name: self.first_name,
            middle_name: self.middle_name,
            last_name: self.last_name,
            email: self.email,
            role: self.role.map(Role::from),
            creations: creations.transpose()?,
            redirections: redirections.transpose()?,
        })
    }
}

/// A new password.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewPassword)]
pub(crate) struct PasswordBody {
    /// The password until now. Needed for your own, and refused for somebody else's.
    pub(crate) old_password: Option<Secret>,
    /// At least 8 characters.
    pub(crate) new_password: Secret,
    /// Whether the user's API keys end too, and every key that was made with one of them: for when somebody else may
    /// have had the password.
    #[serde(default)]
    pub(crate) revoke_api_keys: bool,
}

/// A user.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = User)]
pub(crate) struct UserBody {
    pub(crate) id: UserId,
    #[schema(example = "Ada")]
    first_name: String,
    #[schema(required = true)]
    middle_name: Option<String>,
    #[schema(example = "Lovelace")]
    last_name: String,
    /// In lower case.
    #[schema(example = "ada@example.com")]
    email: String,
    role: RoleName,
    /// Since when the user is kept out. `null`: they are not.
    #[schema(required = true)]
    disabled_at: Option<Rfc3339>,
    /// How many links all of the user's API keys together may make. `null`: the server's default.
    #[schema(required = true)]
    creations: Option<RateBody>,
    /// How often all of the user's links together may be followed. `null`: the server's default.
    #[schema(required = true)]
    redirections: Option<RateBody>,
    created_at: Rfc3339,
    updated_at: Rfc3339,
}

impl UserBody {
    pub(crate) fn new(user: &User) -> Self {
        Self {
            id: UserId(user.id),
            first_name: user.first_name.to_string(),
            middle_name: user.middle_name.as_deref().map(str::to_owned),
            last_name: user.last_name.to_string(),
            email: user.email.to_string(),
            role: user.role.into(),
            disabled_at: user.disabled_at.map(Rfc3339),
            creations: user.allowance.creations.map(RateBody::new),
            redirections: user.allowance.redirections.map(RateBody::new),
            created_at: Rfc3339(user.created_at),
            updated_at: Rfc3339(user.updated_at),
        }
    }
}

/// One page of users.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UserPage)]
pub(crate) struct UsersBody {
    /// Oldest first.
    pub(crate) users: Vec<UserBody>,
    /// The cursor of the next page; `null` on the last one.
    #[schema(required = true, example = json!(null))]
    pub(crate) next: Option<String>,
}
