//! Who may follow a link, as requests say it: the visibility, and a password that is hashed on its way in.

use curt_accounts::{CallerId, Passwords, Place, Principal};
use curt_core::Visibility;
use curt_core::limits::PASSWORD_BYTES_MAX;
use curt_links::{EditLink, NewLink};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::Object;
use super::link_body::{EditLinkBody, NewLinkBody};
use crate::caller::Caller;
use crate::problem::{Problem, ProblemCode};
use crate::rate_limit;
use crate::state::App;

const BULK_PASSWORDS_MAX: usize = 20;

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

/// Hashes the passwords of one request's links.
pub(crate) struct LinkHasher<'a> {
    passwords: &'a Passwords,
    /// `None` when the request has no passwords.
    place: Option<Place>,
}

impl<'a> LinkHasher<'a> {
    /// Counts so many passwords towards what their maker may set, before any of them is hashed. A request that finds no
    /// place costs nothing of it.
    pub(crate) async fn begin(
        app: &'a App,
        caller: &Caller,
        principal: Option<&Principal>,
        count: usize,
    ) -> Result<Self, Problem> {
        let passwords = &*app.accounts.link_passwords;
        if count == 0 {
            let place = None;
            return Ok(Self { passwords, place });
        }
        let place = Some(passwords.admit(CallerId::of(principal, caller.address))?);
        let limits = &app.accounts.limits;
        let decision = limits.password_links(principal, caller.address, count as u64);
        rate_limit::granted(decision.await?)?;
        Ok(Self { passwords, place })
    }

    pub(crate) async fn hash(&self, password: &str) -> Result<Box<str>, Problem> {
        if !(1..=PASSWORD_BYTES_MAX).contains(&password.len()) {
            let message = format!("A link's password has 1 to {PASSWORD_BYTES_MAX} bytes.");
            return Err(Problem::invalid_field("password", "length", message));
        }
        let Some(place) = &self.place else {
            return Err(Problem::new(ProblemCode::Internal));
        };
        Ok(self.passwords.hash_in(place, password).await?)
    }
}

/// The new link with its password hashed.
pub(crate) async fn new_link(
    app: &App,
    caller: &Caller,
    principal: Option<&Principal>,
    body: NewLinkBody,
) -> Result<NewLink, Problem> {
    let passwords = usize::from(body.password.is_some());
    let hasher = LinkHasher::begin(app, caller, principal, passwords).await?;
    hashed(&hasher, body).await
}

/// The links of a bulk request with their passwords hashed, of which there are few: each is hard work.
pub(crate) async fn new_links(
    app: &App,
    caller: &Caller,
    principal: Option<&Principal>,
    links: Vec<Object<NewLinkBody>>,
) -> Result<Vec<NewLink>, Problem> {
    let with_password = links.iter().filter(|link| link.0.password.is_some());
    let passwords = with_password.count();
    if passwords > BULK_PASSWORDS_MAX {
        let message =
            format!("A bulk request makes at most {BULK_PASSWORDS_MAX} links with a password.");
        return Err(Problem::invalid_field("links", "password_count", message));
    }
    let hasher = LinkHasher::begin(app, caller, principal, passwords).await?;
    let mut new = Vec::with_capacity(links.len());
    for (at, Object(link)) in links.into_iter().enumerate() {
        let link = hashed(&hasher, link).await;
        new.push(link.map_err(|problem| problem.inside(&format!("links[{at}]")))?);
    }
    Ok(new)
}

async fn hashed(hasher: &LinkHasher<'_>, body: NewLinkBody) -> Result<NewLink, Problem> {
    let password_hash = match &body.password {
        Some(password) => Some(hasher.hash(password.reveal()).await?),
        None => None,
    };
    Ok(NewLink {
        password_hash,
        ..body.into()
    })
}

/// The changes with their password hashed.
pub(crate) async fn edit_link(
    app: &App,
    caller: &Caller,
    principal: &Principal,
    body: EditLinkBody,
) -> Result<EditLink, Problem> {
    let password_hash = match &body.password {
        Some(Some(password)) => {
            let hasher = LinkHasher::begin(app, caller, Some(principal), 1).await?;
            Some(Some(hasher.hash(password.reveal()).await?))
        }
        Some(None) => Some(None),
        None => None,
    };
    Ok(EditLink {
        password_hash,
        ..body.into()
    })
}
