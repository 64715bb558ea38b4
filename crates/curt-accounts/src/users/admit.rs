use std::fmt;

use curt_core::{Field, FieldError, FieldErrors};

use crate::admit;
use crate::error::AccountError;

/// A user to be created, not yet validated.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NewUser {
    pub first_name: String,
    pub middle_name: Option<String>,
    pub last_name: String,
    pub email: String,
    pub password: String,
}

/// Without the password.
impl fmt::Debug for NewUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewPerson")
            .field("email", &self.email)
            .finish_non_exhaustive()
    }
}

/// A user whose fields are valid.
pub(super) struct AdmittedUser {
    pub(super) first_name: Box<str>,
    pub(super) middle_name: Option<Box<str>>,
    pub(super) last_name: Box<str>,
    pub(super) email: Box<str>,
}

pub(super) fn admitted(new: &NewUser) -> Result<AdmittedUser, AccountError> {
    let mut mistakes = FieldErrors::default();
    let first_name = mistakes.note(admit::required_name(Field::FirstName, &new.first_name));
    let middle_name = mistakes.note(middle_name(new.middle_name.as_deref()));
    let last_name = mistakes.note(admit::name(Field::LastName, &new.last_name));
    let email = mistakes.note(admit::email(&new.email));
    mistakes.note(admit::password(
        &new.password,
        &admit::normalized_email(&new.email),
    ));
    match (
        first_name,
        middle_name,
        last_name,
        email,
        mistakes.into_vec(),
    ) {
        (Some(first_name), Some(middle_name), Some(last_name), Some(email), mistakes)
            if mistakes.is_empty() =>
        {
            Ok(AdmittedUser {
                first_name,
                middle_name,
                last_name,
                email,
            })
        }
        (.., mistakes) => Err(AccountError::Invalid(mistakes)),
    }
}

/// An empty one is none.
pub(super) fn middle_name(text: Option<&str>) -> Result<Option<Box<str>>, FieldError> {
    let name = text
        .map(|text| admit::name(Field::MiddleName, text))
        .transpose()?;
    Ok(name.filter(|name| !name.is_empty()))
}
