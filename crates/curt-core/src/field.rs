//! Mistakes in what a client asks for, told by field.

use std::fmt;

/// A part of a request. Its name is the domain's; clients of an interface know it by that interface's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    Alias,
    Allowance,
    Cursor,
    Email,
    ExpiresAt,
    FirstName,
    IdempotencyKey,
    LastName,
    Links,
    MaxClicks,
    MiddleName,
    Name,
    Password,
    Scopes,
    Search,
    Status,
    Tags,
    Target,
    Title,
    ValidSince,
    Visibility,
}

impl Field {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Alias => "alias",
            Self::Allowance => "allowance",
            Self::Cursor => "cursor",
            Self::Email => "email",
            Self::ExpiresAt => "expires_at",
            Self::FirstName => "first_name",
            Self::IdempotencyKey => "idempotency_key",
            Self::LastName => "last_name",
            Self::Links => "links",
            Self::MaxClicks => "max_clicks",
            Self::MiddleName => "middle_name",
            Self::Name => "name",
            Self::Password => "password",
            Self::Scopes => "scopes",
            Self::Search => "search",
            Self::Status => "status",
            Self::Tags => "tags",
            Self::Target => "target",
            Self::Title => "title",
            Self::ValidSince => "valid_since",
            Self::Visibility => "visibility",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One mistake in a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct FieldError {
    pub field: Field,
    /// Stable, for programs.
    pub code: &'static str,
    /// One sentence, for people.
    pub message: String,
}

impl FieldError {
    pub fn new(field: Field, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            field,
            code,
            message: message.into(),
        }
    }
}

/// The mistakes of one request: all of it is checked before any of it is refused.
#[derive(Debug, Default)]
pub struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    /// Returns the checked value, or keeps the mistake.
    pub fn note<T>(&mut self, checked: Result<T, FieldError>) -> Option<T> {
        checked.map_err(|error| self.0.push(error)).ok()
    }

    /// As [`note`](Self::note), for a check that finds several.
    pub fn note_all<T>(&mut self, checked: Result<T, Vec<FieldError>>) -> Option<T> {
        checked.map_err(|errors| self.0.extend(errors)).ok()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn into_vec(self) -> Vec<FieldError> {
        self.0
    }

    /// Joins the mistakes for an error message.
    #[must_use]
    pub fn list(errors: &[FieldError]) -> String {
        let sentences: Vec<String> = errors.iter().map(FieldError::to_string).collect();
        sentences.join(" ")
    }
}
