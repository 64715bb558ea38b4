//! The two operations of the API as it was first written down: `createURL` and `deleteURL`.
//!
//! Parameters come in a JSON or form body, in the query, or partly here and partly there; the body wins. An empty
//! value counts as none. `user_name` becomes the tag `user:NAME` (in lower case), by which the links can be listed.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use curt_core::limits::{HTTP_BODY_BYTES_MAX, TAG_BYTES_MAX};
use curt_core::{Field, Scope};
use curt_links::{Expiry, LinkDraft, LinkError, NewLink, Who};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::form_urlencoded;
use utoipa::{IntoParams, ToSchema};

use super::body::{self, FORM, JSON, Object};
use super::documented::{CreateUrlProblems, DeleteUrlProblems};
use super::time::{DateOrTime, Rfc3339};
use crate::body_budget::BodySource;
use crate::caller::Caller;
use crate::pages::negotiate::prefers_json;
use crate::problem::{InvalidField, Problem, field_name};
use crate::rate_limit;
use crate::state::App;
use crate::tasks::run_to_completion;

const USER_TAG: &str = "user:";
const USER_NAME_BYTES_MAX: usize = TAG_BYTES_MAX - USER_TAG.len();

/// The parameters of `createURL`.
#[derive(Debug, Default, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
#[schema(as = CreateUrl)]
pub(crate) struct CreateUrl {
    /// The API key, unless a header or the query has it.
    #[param(ignore)]
    api_dev_key: Option<String>,
    /// Where the link leads. Needed, in the body or in the query.
    #[schema(example = "https://example.com/a/long/path")]
    #[param(nullable = false, example = "https://example.com/a/long/path")]
    original_url: Option<String>,
    /// The key of your choice.
    #[schema(example = "spring-sale")]
    #[param(nullable = false, example = "spring-sale")]
    custom_alias: Option<String>,
    /// Whose link it is: kept, in lower case, as the tag `user:NAME`.
    #[schema(example = "ada")]
    #[param(nullable = false, example = "ada")]
    user_name: Option<String>,
    /// Until when the link works: an instant, or the last day (UTC).
    #[schema(value_type = Option<DateOrTime>)]
    #[param(nullable = false, value_type = Option<DateOrTime>)]
    expire_date: Option<String>,
}

/// The answer of `createURL` for clients that ask for JSON.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShortUrl {
    #[schema(format = "uri", example = "https://sho.rt/spring-sale")]
    short_url: String,
}

/// The parameters of `deleteURL`.
#[derive(Debug, Default, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
#[schema(as = DeleteUrl)]
pub(crate) struct DeleteUrl {
    /// The API key, unless a header or the query has it.
    #[param(ignore)]
    api_dev_key: Option<String>,
    /// The key of the link, or its whole short URL. Needed, in the body or in the query.
    #[schema(example = "spring-sale")]
    #[param(nullable = false, example = "spring-sale")]
    url_key: Option<String>,
}

/// Shorten a URL
///
/// Answers with the bare short URL, or with an object for clients that ask for `application/json`.
#[utoipa::path(
    post,
    path = "/api/v1/createURL",
    tag = "original",
    operation_id = "createURL",
    security(("bearer" = []), ("header" = []), ("parameter" = [])),
    params(CreateUrl),
    request_body(content(
        (CreateUrl = "application/json"),
        (CreateUrl = "application/x-www-form-urlencoded"),
    )),
    responses(
        (status = 200, description = "The short URL.", content(
            (String = "text/plain", example = "https://sho.rt/spring-sale"),
            (ShortUrl = "application/json"),
        )),
        CreateUrlProblems,
    ),
)]
pub(crate) async fn create_url(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, raw) = request.into_parts();
    // A key in a header counts before one in the body, so that the body need not be read to refuse it.
    let shown = match caller.shows_api_key() {
        true => caller.require_creator(&app, None).await?,
        false => None,
    };
    if shown.is_some() {
        caller.refuse_exhausted(&app, shown.as_ref()).await?;
    }
    let source = caller.body_source(shown.as_ref());
    let asked: CreateUrl = parameters(&app, source, &parts, raw).await?;
    let principal = match shown {
        Some(shown) => Some(shown),
        None => {
            caller
                .require_creator(&app, asked.api_dev_key.as_deref())
                .await?
        }
    };
    let draft = LinkDraft {
        link: new_link(asked)?,
        password: None,
    };
    let creator = caller.link_caller(principal.as_ref());
    let creating = app.link_operations().create_link(creator, draft, None);
    let (created, quota) = creating.await.map_err(|error| match error {
        LinkError::Invalid(mistakes) => Problem::mistakes(mistakes, original_name),
        other => other.into(),
    })?;
    let short_url = app.public.short_url(created.link.id.key.as_str());
    let mut response = if prefers_json(&parts.headers) {
        Json(ShortUrl { short_url }).into_response()
    } else {
        short_url.into_response()
    };
    rate_limit::note(&mut response, quota.as_ref());
    Ok(response)
}

/// Delete a short URL
///
/// Answers `SUCCESS`.
#[utoipa::path(
    delete,
    path = "/api/v1/deleteURL",
    tag = "original",
    operation_id = "deleteURL",
    security(("bearer" = []), ("header" = []), ("parameter" = [])),
    params(DeleteUrl),
    request_body(content(
        (DeleteUrl = "application/json"),
        (DeleteUrl = "application/x-www-form-urlencoded"),
    )),
    responses(
        (status = 200, description = "The link is deleted.", body = String, content_type = "text/plain",
            example = "SUCCESS"),
        DeleteUrlProblems,
    ),
)]
pub(crate) async fn delete_url(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, raw) = request.into_parts();
    let shown = match caller.shows_api_key() {
        true => Some(caller.require_scope(&app, Scope::Manage).await?),
        false => None,
    };
    let source = caller.body_source(shown.as_ref());
    let asked: DeleteUrl = parameters(&app, source, &parts, raw).await?;
    let key = asked.api_dev_key.as_deref();
    let principal = match shown {
        Some(shown) => shown,
        None => caller.require_scope_with(&app, key, Scope::Manage).await?,
    };
    let who = Who::reachable_by(&principal);
    let url_key = needed("url_key", asked.url_key)?;
    let base = format!("{}/", app.public.base());
    let key = url_key.strip_prefix(&base).unwrap_or(&url_key).to_owned();
    run_to_completion(async move {
        let deleter = caller.link_caller(Some(&principal));
        let deleting = app.link_operations().delete_link(deleter, who, &key, None);
        // This API knows no links that can be restored.
        deleting.await.map_err(|error| match error {
            LinkError::Deleted => LinkError::NotFound,
            other => other,
        })
    })
    .await?;
    Ok("SUCCESS".into_response())
}

fn new_link(asked: CreateUrl) -> Result<NewLink, Problem> {
    let mut errors = Vec::new();
    let mut keep = |error| errors.push(error);
    let tags = match asked.user_name.filter(|name| !name.is_empty()) {
        Some(name) if name.len() > USER_NAME_BYTES_MAX => {
            let message = format!("A user name has at most {USER_NAME_BYTES_MAX} bytes.");
            keep(InvalidField::new("user_name", "length", message));
            Vec::new()
        }
        Some(name) => vec![format!("{USER_TAG}{name}")],
        None => Vec::new(),
    };
    let expires_at = match asked.expire_date.filter(|text| !text.is_empty()) {
        Some(text) => match Rfc3339::parse_end_of_day(&text).or_else(|_| Rfc3339::parse(&text)) {
            Ok(at) => Expiry::At(at.0),
            Err(_) => {
                let message = "Write a date as 2030-12-31 or an instant as 2030-12-31T23:59:59Z.";
                keep(InvalidField::new("expire_date", "time", message));
                Expiry::Default
            }
        },
        None => Expiry::Default,
    };
    let target = match needed("original_url", asked.original_url) {
        Ok(target) => target,
        Err(problem) => {
            problem.errors().iter().cloned().for_each(&mut keep);
            String::new()
        }
    };
    if !errors.is_empty() {
        return Err(Problem::invalid(errors));
    }
    Ok(NewLink {
        target,
        alias: asked.custom_alias.filter(|alias| !alias.is_empty()),
        tags,
        expires_at,
        ..NewLink::default()
    })
}

/// Returns the parameter's name here.
fn original_name(field: Field) -> &'static str {
    match field {
        Field::Target => "original_url",
        Field::Alias => "custom_alias",
        Field::ExpiresAt => "expire_date",
        Field::Tags => "user_name",
        field => field_name(field),
    }
}

fn needed(name: &'static str, value: Option<String>) -> Result<String, Problem> {
    value
        .filter(|value| !value.is_empty())
        .ok_or_else(|| Problem::invalid_field(name, "missing", "This parameter is needed."))
}

/// Gathers the parameters from query and body into one object and reads that.
async fn parameters<T>(
    app: &App,
    source: BodySource,
    parts: &Parts,
    raw: axum::body::Body,
) -> Result<T, Problem>
where
    T: serde::de::DeserializeOwned,
{
    let mut given = serde_json::Map::new();
    add_pairs(&mut given, parts.uri.query().unwrap_or_default().as_bytes())?;
    let raw = body::read(app, source, raw, HTTP_BODY_BYTES_MAX).await?;
    if !raw.is_empty() || parts.headers.contains_key(CONTENT_TYPE) {
        let mut in_body = serde_json::Map::new();
        if body::media_type(&parts.headers, &[JSON, FORM])? == JSON {
            // Read as what it should be first, so that errors have a line, and repeated fields are met.
            let Object(_): Object<T> = body::from_json(&raw)?;
            in_body = body::from_json(&raw)?;
        } else {
            add_pairs(&mut in_body, &raw)?;
        }
        given.extend(in_body);
    }
    let Object(read) = body::from_json(json!(given).to_string().as_bytes())?;
    Ok(read)
}

fn add_pairs(
    given: &mut serde_json::Map<String, serde_json::Value>,
    pairs: &[u8],
) -> Result<(), Problem> {
    for (name, value) in form_urlencoded::parse(pairs) {
        if given
            .insert(name.clone().into_owned(), json!(value))
            .is_some()
        {
            let field = name.chars().take(64).collect::<String>();
            return Err(Problem::invalid_field(
                field,
                "duplicate",
                "Give this parameter once.",
            ));
        }
    }
    Ok(())
}
