//! Who may follow a link, as requests say it: the visibility, and a password that is hashed on its way in.

use curt_core::Visibility;
use curt_core::limits::PASSWORD_BYTES_MAX;
use curt_links::{EditLink, NewLink};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::link_body::{EditLinkBody, NewLinkBody};
use super::secret::Secret;
use crate::problem::Problem;
use crate::state::App;

/// `public`: everybody may follow the link. `private`: its owner and whoever has a permission. `password`: whoever
/// knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Visibility)]
pub(crate) enum VisibilityName {
    Public,
    Private,
    Password,
}

impl VisibilityName {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Password => "password",
        }
    }
}

impl From<Visibility> for VisibilityName {
    fn from(visibility: Visibility) -> Self {
        match visibility {
            Visibility::Public => Self::Public,
            Visibility::Private => Self::Private,
            Visibility::Password => Self::Password,
        }
    }
}

impl From<VisibilityName> for Visibility {
    fn from(name: VisibilityName) -> Self {
        match name {
            VisibilityName::Public => Self::Public,
            VisibilityName::Private => Self::Private,
            VisibilityName::Password => Self::Password,
        }
    }
}

/// The new link with its password hashed.
pub(crate) async fn new_link(app: &App, body: NewLinkBody) -> Result<NewLink, Problem> {
    let password_hash = match &body.password {
        Some(password) => Some(hash(app, password).await?),
        None => None,
    };
    Ok(NewLink {
        password_hash,
        ..body.into()
    })
}

/// The changes with their password hashed.
pub(crate) async fn edit_link(app: &App, body: EditLinkBody) -> Result<EditLink, Problem> {
    let password_hash = match &body.password {
        Some(Some(password)) => Some(Some(hash(app, password).await?)),
        Some(None) => Some(None),
        None => None,
    };
    Ok(EditLink {
        password_hash,
        ..body.into()
    })
}

async fn hash(app: &App, password: &Secret) -> Result<Box<str>, Problem> {
    let password = password.reveal();
    if !(1..=PASSWORD_BYTES_MAX).contains(&password.len()) {
        let message = format!("A link's password has 1 to {PASSWORD_BYTES_MAX} bytes.");
        return Err(Problem::invalid_field("password", "length", message));
    }
    Ok(app.accounts.passwords.hash(password).await?)
}
