//! `/api/v1/links`: the REST resource.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use curt_core::limits::HTTP_BODY_BYTES_MAX;
use curt_core::{OwnerId, Revision, Scope};
use curt_links::{LinkError, Who};
use http::header::{ETAG, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};

use super::body::{self, JSON, MERGE_PATCH, Object};
use super::documented::{
    ChangeProblems, CreateProblems, DeleteProblems, ListProblems, ReadProblems, RestoreProblems,
};
use super::idempotency::{REPLAYED, read_idempotency_key};
use super::link_body::{EditLinkBody, LinkBody, NewLinkBody, PageBody, RestoreBody};
use super::link_view;
use super::list_query::{self, ListParams};
use super::listed;
use super::paging;
use super::readable::if_readable;
use super::revision::{Condition, etag};
use crate::caller::Caller;
use crate::problem::{Problem, ProblemCode};
use crate::rate_limit;
use crate::state::App;
use crate::tasks::run_to_completion;

pub(crate) const PATH: &str = "/api/v1/links";

/// Make a link
///
/// Stores the link durably before it answers. With an `Idempotency-Key` the request can be repeated safely for 24
/// hours: the answer is the link that the first one made, as it is now, and `Idempotent-Replayed: true`. If the link has
/// been deleted or purged since, the answer is 410 `created-link-gone`, and nothing is made. Keys are those of your
/// account, and without one those of your address. Every request counts towards the limit, a repeated one too.
#[utoipa::path(
    post,
    path = "/api/v1/links",
    tag = "links",
    operation_id = "createLink",
    params(("Idempotency-Key" = Option<String>, Header, nullable = false, description = "Any text of your choice, new for each new request.",
        pattern = "^[!-~]{1,255}$", example = "b7f0c9f4-8f0e-4c1e-9d6a-7a3c52a1f001")),
    request_body(content = NewLinkBody, content_type = "application/json"),
    responses(
        (status = 201, description = "The link was made.", body = LinkBody, headers(
            ("Location" = String, description = "The link as a resource of the API."),
            ("ETag" = String, description = "The link's revision."),
            ("Idempotent-Replayed" = String, description = "`true` when an earlier request had made the link."))),
        (status = 204, description = "An earlier request had made the link; without the scope `read` it is not shown.",
            headers(
                ("Location" = String, description = "The link as a resource of the API."),
                ("ETag" = String, description = "The link's revision."),
                ("Idempotent-Replayed" = String, description = "`true`."))),
        CreateProblems,
    ),
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, raw) = request.into_parts();
    let principal = caller.require_creator(&app, None).await?;
    caller.refuse_exhausted(&app, principal.as_ref()).await?;
    body::media_type(&parts.headers, &[JSON])?;
    let source = caller.body_source(principal.as_ref());
    let raw = body::read(&app, source, raw, HTTP_BODY_BYTES_MAX).await?;
    let new: Object<NewLinkBody> = body::from_json(&raw)?;
    let maker = principal.as_ref();
    let once = read_idempotency_key(
        &parts.headers,
        maker,
        caller.address,
        "POST /api/v1/links",
        &new,
    )?;
    let creator = caller.link_caller(principal.as_ref());
    let (created, quota) = app
        .link_operations()
        .create_link(creator, new.0.into(), once)
        .await?;
    let location = format!("{PATH}/{}", created.link.id.key);
    let mut response = if created.replayed {
        let asker = principal
            .as_ref()
            .map_or(OwnerId::ANONYMOUS, |known| known.user);
        let mut response = link_view::answer(&app, asker, &created.link).await?;
        *response.status_mut() = StatusCode::CREATED;
        response
    } else {
        link_view::answer_new(&app, &created.link)
    };
    response
        .headers_mut()
        .insert(LOCATION, header_value(&location)?);
    if created.replayed {
        response.headers_mut().insert(REPLAYED, YES);
    }
    rate_limit::note(&mut response, quota.as_ref());
    // The link may be another by now than the one that was asked for.
    Ok(match &principal {
        Some(principal) if created.replayed => if_readable(principal, response),
        _ => response,
    })
}

/// List links
///
/// Your own links, page by page, without deleted ones unless these are asked for; for administrators anybody's. Filters
/// are combined with "and". The next page has the address in the `Link` header with `rel="next"`, or the same query with
/// the cursor in `next`.
#[utoipa::path(
    get,
    path = "/api/v1/links",
    tag = "links",
    operation_id = "listLinks",
    params(ListParams),
    responses(
        (status = 200, description = "One page of links.", body = PageBody, headers(
            ("Link" = String, description = "The address of the next page, with `rel=\"next\"`, if there is one."))),
        ListProblems,
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Read).await?;
    let asked = list_query::parse(uri.query().unwrap_or_default())?;
    let listed = listed::list(&app, &principal, asked).await?;
    let body = PageBody {
        links: link_view::view_counted(&app, &listed.links, listed.clicks).await?,
        next: listed.next,
    };
    paging::page(&uri, body.next.as_deref(), &body)
}

/// Read a link
#[utoipa::path(
    get,
    path = "/api/v1/links/{key}",
    tag = "links",
    operation_id = "getLink",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        ("If-None-Match" = Option<String>, Header, nullable = false,  example = "\"1.1\"",
            description = "An ETag that you have; the answer is 304 if it is still the link's."),
    ),
    responses(
        (status = 200, description = "The link.", body = LinkBody,
            headers(("ETag" = String, description = "The link's revision."))),
        (status = 304, description = "The link has not changed."),
        ReadProblems,
    ),
)]
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Read).await?;
    let who = Who::reachable_by(&principal);
    let seen = Condition::if_none_match(&headers)?;
    let link = app.links.get(who, &known_key(key)?).await?;
    if seen.names(link.revision) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, etag(link.revision))]).into_response());
    }
    link_view::answer(&app, principal.user, &link).await
}

/// Edit a link
///
/// A JSON merge patch (RFC 7396): fields that are absent stay, `null` clears. With `If-Match` the edit happens only
/// if the link still has that revision, so that no edit of somebody else is lost. A new `expires_at` renews a link that
/// has expired; one that is deleted has to be restored first.
#[utoipa::path(
    patch,
    path = "/api/v1/links/{key}",
    tag = "links",
    operation_id = "editLink",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        ("If-Match" = Option<String>, Header, nullable = false,  example = "\"1.1\"",
            description = "The ETag that the edit is based on, or `*`."),
    ),
    request_body(content(
        (EditLinkBody = "application/merge-patch+json"),
        (EditLinkBody = "application/json"),
    )),
    responses(
        (status = 200, description = "The link as it is now.", body = LinkBody,
            headers(("ETag" = String, description = "The link's new revision."))),
        (status = 204, description = "The link is changed; without the scope `read` it is not shown.",
            headers(("ETag" = String, description = "The link's new revision."))),
        ChangeProblems,
    ),
)]
pub(crate) async fn edit(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, raw) = request.into_parts();
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let who = Who::reachable_by(&principal);
    body::media_type(&parts.headers, &[MERGE_PATCH, JSON])?;
    let condition = Condition::if_match(&parts.headers)?;
    let source = caller.body_source(Some(&principal));
    let raw = body::read(&app, source, raw, HTTP_BODY_BYTES_MAX).await?;
    let Object(changes): Object<EditLinkBody> = body::from_json(&raw)?;
    let key = known_key(key)?;
    let seen = seen(&app, who, &key, &condition).await?;
    let (working, editor) = (Arc::clone(&app), principal.clone());
    let link = run_to_completion(async move {
        let operations = working.link_operations();
        let caller = caller.link_caller(Some(&editor));
        operations
            .edit_link(caller, who, &key, seen, changes.into())
            .await
    });
    let answer = link_view::answer(&app, principal.user, &link.await?).await?;
    Ok(if_readable(&principal, answer))
}

/// Delete a link
///
/// The link answers 410 from now on, and its key is not given to another link. It stays in lists of deleted links, with its
/// clicks, and can be restored, until the server's grace period is over; then it is purged. Links that expired are kept
/// and purged in the same way.
#[utoipa::path(
    delete,
    path = "/api/v1/links/{key}",
    tag = "links",
    operation_id = "deleteLink",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        ("If-Match" = Option<String>, Header, nullable = false,  example = "\"1.1\"",
            description = "The ETag of the link that you mean to delete, or `*`."),
    ),
    responses((status = 204, description = "The link is deleted."), DeleteProblems),
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let who = Who::reachable_by(&principal);
    let condition = Condition::if_match(&headers)?;
    let key = known_key(key)?;
    let seen = seen(&app, who, &key, &condition).await?;
    run_to_completion(async move {
        let deleter = caller.link_caller(Some(&principal));
        let operations = app.link_operations();
        operations.delete_link(deleter, who, &key, seen).await
    })
    .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Restore a link
///
/// Makes a deleted or expired link redirect again. One that has expired gets the server's default life from now on, unless
/// the body says otherwise. Where there is nothing to restore, nothing changes; a link that an administrator switched off
/// stays so.
#[utoipa::path(
    post,
    path = "/api/v1/links/{key}/restore",
    tag = "links",
    operation_id = "restoreLink",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        ("If-Match" = Option<String>, Header, nullable = false,  example = "\"1.1\"",
            description = "The ETag of the link that you mean to restore, or `*`."),
    ),
    request_body(content = Option<RestoreBody>, content_type = "application/json"),
    responses(
        (status = 200, description = "The link as it is now.", body = LinkBody,
            headers(("ETag" = String, description = "The link's new revision."))),
        (status = 204, description = "The link is restored; without the scope `read` it is not shown.",
            headers(("ETag" = String, description = "The link's new revision."))),
        RestoreProblems,
    ),
)]
pub(crate) async fn restore(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let who = Who::reachable_by(&principal);
    let condition = Condition::if_match(request.headers())?;
    let source = caller.body_source(Some(&principal));
    let asked: RestoreBody = body::json_or_default(&app, source, request).await?;
    let key = known_key(key)?;
    let seen = seen(&app, who, &key, &condition).await?;
    let (working, restorer) = (Arc::clone(&app), principal.clone());
    let restored = run_to_completion(async move {
        let restorer = caller.link_caller(Some(&restorer));
        let operations = working.link_operations();
        let expires_at = asked.expiry();
        operations
            .restore_link(restorer, who, &key, seen, expires_at)
            .await
    });
    let answer = link_view::answer(&app, principal.user, &restored.await?).await?;
    Ok(if_readable(&principal, answer))
}

pub(super) const YES: HeaderValue = HeaderValue::from_static("true");

/// A path that is not UTF-8 cannot name a link.
pub(super) fn known_key(key: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    key.map(|Path(key)| key)
        .map_err(|_| Problem::new(ProblemCode::LinkNotFound))
}

/// The one revision that the change may be based on. Of several the link's own is chosen, if it is among them; weak
/// tags never are (RFC 9110, 13.1.1).
async fn seen(
    app: &App,
    who: Who,
    key: &str,
    condition: &Condition,
) -> Result<Option<Revision>, Problem> {
    let named = match condition {
        Condition::Absent | Condition::Any => return Ok(None),
        Condition::Named(named) => named,
    };
    let strong: Vec<_> = named.iter().filter(|seen| !seen.weak).collect();
    if let [only] = strong.as_slice() {
        return Ok(Some(only.revision));
    }
    let now = app.links.get(who, key).await?.revision;
    if strong.iter().any(|seen| seen.revision == now) {
        Ok(Some(now))
    } else {
        Err(LinkError::Stale(now).into())
    }
}

fn header_value(text: &str) -> Result<HeaderValue, Problem> {
    HeaderValue::from_str(text).map_err(|_| Problem::new(ProblemCode::Internal))
}
