//! Errors as clients see them: RFC 9457 problem documents.
//!
//! Handlers return a [`Problem`] and never build a status by hand. Every failure of the parts below becomes one in
//! [`from`], in one exhaustive match per error type. A problem travels in the response's extensions up to the
//! outermost layer, which turns it into a page when the client prefers HTML.

mod code;
mod from;

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, ETAG, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue};
use serde::Serialize;
use utoipa::ToSchema;

pub use code::ProblemCode;
pub(crate) use from::field_name;

pub const PROBLEM_JSON: &str = "application/problem+json";

/// Seconds after which a client should come again when a store is away.
const RETRY_AFTER_SECONDS: &str = "2";

/// One occurrence of an error.
#[derive(Clone, Debug)]
pub struct Problem {
    code: ProblemCode,
    detail: Cow<'static, str>,
    errors: Vec<InvalidField>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// One part of the input that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InvalidField {
    /// The field, as a path into the body or the name of a query parameter or header.
    #[schema(example = "target")]
    pub field: Cow<'static, str>,
    /// A stable word for the reason.
    #[schema(example = "scheme")]
    pub code: Cow<'static, str>,
    /// The reason in words.
    #[schema(example = "Only http and https addresses can be shortened.")]
    pub message: Cow<'static, str>,
}

impl InvalidField {
    pub fn new(
        field: impl Into<Cow<'static, str>>,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            field: field.into(),
            code: code.into(),
            message: message.into(),
        }
    }
}

/// An error, as RFC 9457 describes it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// Names the kind of problem; resolves to a page that explains it.
    #[serde(rename = "type")]
    #[schema(format = "uri-reference", example = "/problems/alias-taken")]
    pub kind: String,
    /// The kind of problem in words.
    #[schema(example = "The alias is already taken")]
    pub title: &'static str,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599, example = 409)]
    pub status: u16,
    /// This occurrence in words.
    #[schema(example = "Another link has this alias.")]
    pub detail: Cow<'static, str>,
    /// The last part of `type`, for programs.
    #[schema(example = "alias-taken")]
    pub code: &'static str,
    /// The fields that were refused; only with the code `invalid-input`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<InvalidField>,
}

impl Problem {
    /// A problem whose occurrence needs no more words than its kind.
    #[must_use]
    pub fn new(code: ProblemCode) -> Self {
        let mut problem = Self {
            code,
            detail: Cow::Borrowed(code.advice()),
            errors: Vec::new(),
            headers: Vec::new(),
        };
        match code {
            ProblemCode::CredentialsMissing
            | ProblemCode::WrongCredentials
            | ProblemCode::SignInNeeded => {
                problem = problem.header(WWW_AUTHENTICATE, "Bearer realm=\"curt\"");
            }
            ProblemCode::CredentialsInvalid => {
                let challenge = "Bearer realm=\"curt\", error=\"invalid_token\"";
                problem = problem.header(WWW_AUTHENTICATE, challenge);
            }
            ProblemCode::StoreUnavailable
            | ProblemCode::KeysExhausted
            | ProblemCode::Overloaded
            | ProblemCode::TooManyAtOnce
            | ProblemCode::TooManyBodies
            | ProblemCode::TooManyFeeds => {
                problem = problem.header(RETRY_AFTER, RETRY_AFTER_SECONDS);
            }
            _ => {}
        }
        problem
    }

    #[must_use]
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = detail.into();
        self
    }

    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    #[must_use]
    pub(crate) fn header_value(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Tells the client which revision it should have named.
    #[must_use]
    pub(crate) fn etag(mut self, value: HeaderValue) -> Self {
        self.headers.push((ETAG, value));
        self
    }

    /// Input that was understood and refused, field by field.
    #[must_use]
    pub fn invalid(errors: Vec<InvalidField>) -> Self {
        let detail = match errors.as_slice() {
            [one] => format!("{}: {}", one.field, one.message).into(),
            _ => Cow::Borrowed(ProblemCode::InvalidInput.advice()),
        };
        let mut problem = Self::new(ProblemCode::InvalidInput).detail(detail);
        problem.errors = errors;
        problem
    }

    /// [`invalid`](Self::invalid) for a single field.
    #[must_use]
    pub fn invalid_field(
        field: impl Into<Cow<'static, str>>,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::invalid(vec![InvalidField::new(field, code, message)])
    }

    #[must_use]
    pub fn code(&self) -> ProblemCode {
        self.code
    }

    #[must_use]
    pub fn errors(&self) -> &[InvalidField] {
        &self.errors
    }

    /// Gives the fields the names that this operation's clients know.
    #[must_use]
    pub(crate) fn rename_fields(mut self, name: impl Fn(&str) -> Option<&'static str>) -> Self {
        if self.errors.is_empty() {
            return self;
        }
        for error in &mut self.errors {
            if let Some(name) = name(&error.field) {
                error.field = Cow::Borrowed(name);
            }
        }
        let headers = self.headers;
        let mut renamed = Self::invalid(self.errors);
        renamed.headers = headers;
        renamed
    }

    /// Says in which part of the body the fields are.
    #[must_use]
    pub(crate) fn within_part(mut self, part: &str) -> Self {
        if self.errors.is_empty() {
            return self;
        }
        for error in &mut self.errors {
            error.field = format!("{part}.{}", error.field).into();
        }
        Self::invalid(self.errors)
    }

    #[must_use]
    pub fn body(&self) -> ProblemBody {
        ProblemBody {
            kind: format!("/problems/{}", self.code.slug()),
            title: self.code.title(),
            status: self.code.status().as_u16(),
            detail: self.detail.clone(),
            code: self.code.slug(),
            errors: self.errors.clone(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body()).unwrap_or_default();
        let mut response = (
            self.code.status(),
            [(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON))],
            body,
        )
            .into_response();
        for (name, value) in &self.headers {
            response.headers_mut().insert(name, value.clone());
        }
        response.extensions_mut().insert(self);
        response
    }
}
