//! `GET /{key}` for connections that were handed to the router, and for keys that the fast path did not recognise:
//! percent-encoded ones, which are decoded once, and those with a slash behind them, which people type. Links that are
//! not for everybody are decided about here, at each [click], and `POST /{key}` takes their passwords.
//!
//! 307 and 308 ask a client to repeat its request, method and body included, so that links with these statuses answer
//! every method, by the rules of `GET`: throttling, permission, limits and clicks. 301 and 302 would make a `GET` of most
//! of them: such links answer 405.

mod click;
mod posted;
mod preview;
mod refusal;

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use curt_core::limits::HTTP_BODY_BYTES_MAX;
use http::Method;
use url::form_urlencoded;
use utoipa::ToSchema;

use self::click::ClickRecord;
use self::posted::Posted;
use self::refusal::only_followed;
use crate::api::body;
use crate::api::documented::{FollowProblems, ForwardProblems, UnlockProblems};
use crate::caller::Caller;
use crate::redirect::RedirectFields;
use crate::state::App;

type KeyPath = Result<Path<String>, PathRejection>;

/// Follow a link
///
/// Sends the visitor to the link's target. `HEAD` answers alike. A private link asks for an API key with the scope
/// `read`, or a session, of its owner or of somebody who was given permission. A link with a password is followed by
/// `POST`. A link with `max_clicks` is followed in a browser: programs, `HEAD` and what browsers fetch ahead get 403.
///
/// Where the server has previews, `/{key}+` shows the target of a link that is for everybody, and counts no click.
///
/// First and later requests get the same answer, apart from `X-Request-Id`: redirects straight from memory have none.
#[utoipa::path(
    get,
    path = "/{key}",
    tag = "redirect",
    operation_id = "follow",
    security((), ("bearer" = []), ("header" = [])),
    params(("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale")),
    responses(
        (status = 301, description = "To the target, for good.", headers(("Location" = String, description = "The target."))),
        (status = 302, description = "To the target.", headers(("Location" = String, description = "The target."))),
        (status = 303, description = "To the page to sign in, for browsers.", headers(("Location" = String, description = "The page."))),
        (status = 307, description = "To the target, with the same method.", headers(("Location" = String, description = "The target."))),
        (status = 308, description = "To the target, for good and with the same method.", headers(("Location" = String, description = "The target."))),
        FollowProblems,
    ),
)]
pub(crate) async fn follow(
    State(app): State<Arc<App>>,
    Extension(fields): Extension<Arc<RedirectFields>>,
    caller: Caller,
    key: KeyPath,
    request: Request,
) -> Response {
    let (mut parts, _) = request.into_parts();
    let resolved = parts.extensions.remove();
    let click = ClickRecord::new(&app, &fields, &caller, &parts);
    let is_read = matches!(parts.method, Method::GET | Method::HEAD);
    if is_read && let Some(previewed) = previewed_key(&app, &key) {
        return click.preview(previewed).await;
    }
    click.follow(key_text(&key), resolved).await
}

/// Follow a link by another method
///
/// A link whose `redirect_status` is 307 or 308 answers every method, by the rules of `GET`; the client sends the request to
/// the target again, and its body is not read here. Such requests count as clicks. Other links answer 405.
#[utoipa::path(
    put,
    path = "/{key}",
    tag = "redirect",
    operation_id = "followByPut",
    security((), ("bearer" = []), ("header" = [])),
    params(("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale")),
    responses(
        (status = 303, description = "To the page to sign in, for browsers.", headers(("Location" = String, description = "The page."))),
        (status = 307, description = "To the target, with the same method.", headers(("Location" = String, description = "The target."))),
        (status = 308, description = "To the target, for good and with the same method.", headers(("Location" = String, description = "The target."))),
        ForwardProblems,
    ),
)]
pub(crate) async fn forward(
    state: State<Arc<App>>,
    fields: Extension<Arc<RedirectFields>>,
    caller: Caller,
    key: KeyPath,
    request: Request,
) -> Response {
    // What came of these would not be what was asked for: they are about the way to this server, not about a resource.
    if matches!(*request.method(), Method::TRACE | Method::CONNECT) {
        return only_followed().into_response();
    }
    follow(state, fields, caller, key, request).await
}

/// What opens a link that has a password.
#[derive(ToSchema)]
#[expect(dead_code, reason = "for the document: forms are read field by field")]
pub(crate) struct UnlockBody {
    /// The link's password.
    #[schema(max_length = 256, example = "open sesame")]
    password: String,
}

/// Follow a link that has a password
///
/// Sends whoever knows the password to the link's target, always by `GET`, so that the target does not get the password.
/// Tries are limited, for each link and each address. A link without a password is followed, its method kept, if its
/// `redirect_status` is 307 or 308; others answer 405.
#[utoipa::path(
    post,
    path = "/{key}",
    tag = "redirect",
    operation_id = "unlock",
    security((), ("bearer" = []), ("header" = [])),
    params(("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale")),
    request_body(content = UnlockBody, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 303, description = "To the target; or to the page to sign in, for browsers.",
            headers(("Location" = String, description = "The target."))),
        (status = 307, description = "To the target, with the same method.", headers(("Location" = String, description = "The target."))),
        (status = 308, description = "To the target, for good and with the same method.", headers(("Location" = String, description = "The target."))),
        UnlockProblems,
    ),
)]
pub(crate) async fn unlock(
    State(app): State<Arc<App>>,
    Extension(fields): Extension<Arc<RedirectFields>>,
    caller: Caller,
    key: KeyPath,
    request: Request,
) -> Response {
    let (parts, raw) = request.into_parts();
    let click = ClickRecord::new(&app, &fields, &caller, &parts);
    let link = match click.posted(key_text(&key)).await {
        Posted::Password(link) => link,
        Posted::Forwarded(resolved) => return click.follow(key_text(&key), Some(resolved)).await,
        Posted::Refused(problem) => return click.refuse(problem),
    };
    let shown = async {
        caller.refuse_other_sites()?;
        body::form_only(&parts.headers)?;
        let source = caller.body_source(None);
        let raw = body::read(&app, source, raw, HTTP_BODY_BYTES_MAX).await?;
        Ok(password_in(&raw))
    };
    match shown.await {
        Ok(password) => click.unlock(&link, &password).await,
        Err(problem) => click.refuse(problem),
    }
}

/// The key of an address such as `/plan+`, where previews are on. No key has such a sign.
fn previewed_key<'a>(app: &App, key: &'a KeyPath) -> Option<&'a str> {
    let key = key_text(key)?.strip_suffix('+')?;
    app.settings.pages.preview.then_some(key)
}

/// `None`: not UTF-8, so not a key.
fn key_text(key: &KeyPath) -> Option<&str> {
    key.as_ref().ok().map(|Path(key)| key.as_str())
}

fn password_in(form: &[u8]) -> String {
    let mut fields = form_urlencoded::parse(form);
    let password = fields.find(|(name, _)| name == "password");
    password.map_or_else(String::new, |(_, value)| value.into_owned())
}
