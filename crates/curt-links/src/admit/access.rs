//! Who may follow a link and how often, and how it redirects because of that: what is not for everybody at any time must
//! not be remembered by browsers, which do not ask again after a permanent redirect.

use curt_core::limits::CLICKS_MAX;
use curt_core::{Field, FieldError, OwnerId, RedirectStatus, Visibility};

#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) visibility: Visibility,
    pub(crate) password_hash: Option<Box<str>>,
    pub(crate) max_clicks: Option<u64>,
    pub(crate) status: RedirectStatus,
}

impl Access {
    /// Whether each visit is decided about.
    fn is_guarded(&self) -> bool {
        self.visibility != Visibility::Public || self.max_clicks.is_some()
    }

    /// The configured status, or its temporary counterpart where it must not be remembered.
    pub(super) fn default_status(&self, configured: RedirectStatus) -> RedirectStatus {
        match configured {
            _ if !self.is_guarded() => configured,
            RedirectStatus::MovedPermanently => RedirectStatus::Found,
            RedirectStatus::PermanentRedirect => RedirectStatus::TemporaryRedirect,
            RedirectStatus::Found | RedirectStatus::TemporaryRedirect => configured,
        }
    }
}

pub(super) fn admit(access: Access, owner: OwnerId) -> Result<Access, Vec<FieldError>> {
    let mut mistakes = Vec::new();
    if access.visibility == Visibility::Private && owner == OwnerId::ANONYMOUS {
        mistakes.push(FieldError::new(
            Field::Visibility,
            "visibility_unowned",
            "A link that nobody owns cannot be private: nobody could follow it.",
        ));
    }
    let needs_password = access.visibility == Visibility::Password;
    if needs_password && access.password_hash.is_none() {
        mistakes.push(FieldError::new(
            Field::Password,
            "password_missing",
            "A link with the visibility 'password' needs a password.",
        ));
    }
    if !needs_password && access.password_hash.is_some() {
        mistakes.push(FieldError::new(
            Field::Password,
            "password_unused",
            "A password goes only with the visibility 'password'.",
        ));
    }
    let is_bounded = |most| (1..=CLICKS_MAX).contains(&most);
    if !access.max_clicks.is_none_or(is_bounded) {
        mistakes.push(FieldError::new(
            Field::MaxClicks,
            "max_clicks_range",
            format!("A limit on clicks is a number from 1 to {CLICKS_MAX}."),
        ));
    }
    if access.is_guarded() && access.status.is_permanent() {
        mistakes.push(FieldError::new(
            Field::Status,
            "redirect_status_permanent",
            "A link that is not public or has a limit on clicks redirects with 302 or 307: browsers remember the others.",
        ));
    }
    if mistakes.is_empty() {
        Ok(access)
    } else {
        Err(mistakes)
    }
}
