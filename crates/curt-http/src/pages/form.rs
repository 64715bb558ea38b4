//! Forms as browsers send them, and what was wrong with them.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use curt_core::limits::HTTP_BODY_BYTES_MAX;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use url::form_urlencoded;

use crate::api::{form_only, read_body};
use crate::body_budget::BodySource;
use crate::caller::address;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;

/// The fields of a form, in the order in which they came.
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    pub(super) async fn read(app: &App, request: Request) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        form_only(&parts.headers)?;
        let address = address::of(&parts, &app.settings.api.trusted_proxies);
        let source = BodySource::new(address, None);
        let raw = read_body(app, source, body, HTTP_BODY_BYTES_MAX).await?;
        Ok(Self::parse(&raw))
    }

    pub(super) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// A field without the spaces around it; one that is not there is empty.
    pub(super) fn text(&self, name: &str) -> String {
        self.secret(name).trim().to_owned()
    }

    /// A field as it was typed.
    pub(super) fn secret(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(given, _)| given == name);
        named.map(|(_, value)| value.as_str())
    }
}

/// What a page says about a form that was refused.
#[derive(Default)]
pub(super) struct Mistakes {
    /// Names of fields and what is wrong with them, in the order in which the form shows them.
    fields: Vec<(String, String)>,
    pub(super) message: Option<Message>,
}

pub(super) struct Message {
    pub(super) title: &'static str,
    pub(super) detail: String,
}

impl Mistakes {
    /// What belongs to a field goes beside it, everything else above the form.
    pub(super) fn of_problem(problem: &Problem) -> Self {
        let known = match problem.code() {
            ProblemCode::EmailTaken => Some("email"),
            ProblemCode::KeyNameTaken => Some("key_name"),
            ProblemCode::InviteInvalid => Some("invite"),
            _ => None,
        };
        let body = problem.body();
        if let Some(field) = known {
            return Self {
                fields: vec![(field.to_owned(), format!("{}.", body.title))],
                message: None,
            };
        }
        let fields: Vec<_> = problem
            .errors()
            .iter()
            .map(|error| (error.field.to_string(), error.message.to_string()))
            .collect();
        let message = fields.is_empty().then(|| Message {
            title: body.title,
            detail: body.detail.into_owned(),
        });
        Self { fields, message }
    }

    /// Adds what else is wrong.
    pub(super) fn add(&mut self, field: &str, why: impl Into<String>) {
        self.fields.push((field.to_owned(), why.into()));
    }

    /// Puts the fields into the order of the form, so that the first one gets the focus.
    pub(super) fn in_order(mut self, form: &[&str]) -> Self {
        let place = |name: &str| form.iter().position(|field| *field == name);
        self.fields
            .sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        self
    }

    pub(super) fn any(&self) -> bool {
        self.message.is_some() || !self.fields.is_empty()
    }

    pub(super) fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// Whether a browser is to begin with this field. The first that is wrong, unless a message comes before it.
    pub(super) fn focuses(&self, field: &str) -> bool {
        let first = self.fields.first();
        self.message.is_none() && first.is_some_and(|(name, _)| name == field)
    }

    /// What is wrong with a field.
    pub(super) fn of(&self, field: &str) -> Option<&str> {
        let mut said = self.fields.iter().filter(|(name, _)| name == field);
        said.next().map(|(_, why)| why.as_str())
    }
}

/// Where a browser goes on after a form. `path` is one of ours.
pub(super) fn see_other(path: &str) -> Response {
    match HeaderValue::try_from(path) {
        Ok(path) => (StatusCode::SEE_OTHER, [(LOCATION, path)]).into_response(),
        Err(_) => Problem::new(ProblemCode::Internal).into_response(),
    }
}

/// The address that a form may lead to, if it is on this site. Browsers read `\` as `/` and skip tabs and line ends,
/// so that only what is plain counts.
pub(super) fn own_path(text: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let is_own = text.starts_with('/') && !text.starts_with("//") && text.bytes().all(is_plain);
    is_own.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_site_are_gone_to() {
        for path in ["/", "/abc", "/abc?x=1&y=//z", "/a//b", "/a:b@c"] {
            assert_eq!(own_path(path), Some(path));
        }
        for path in [
            "",
            "abc",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            " //evil.example",
            "https://evil.example",
            "https:evil.example",
            "javascript:alert(1)",
            "/ä",
            "/a b",
            "/a\0",
        ] {
            assert_eq!(own_path(path), None, "{path:?}");
        }
    }
}
