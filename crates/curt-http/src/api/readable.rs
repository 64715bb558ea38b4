//! Answers to changes. Whoever may change something but not read it must not read it back from the answer.

use axum::response::{IntoResponse, Response};
use curt_accounts::Principal;
use curt_core::Scope;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};

/// The answer to a change, which shows what is stored now. Callers without [`Scope::Read`] get 204 and the headers
/// alone, which name what was changed and its revision, and nothing of its content.
pub(crate) fn if_readable(principal: &Principal, answer: Response) -> Response {
    if principal.may(Scope::Read) {
        return answer;
    }
    let (mut parts, _) = answer.into_parts();
    parts.headers.remove(CONTENT_TYPE);
    parts.headers.remove(CONTENT_LENGTH);
    (StatusCode::NO_CONTENT, parts.headers).into_response()
}
