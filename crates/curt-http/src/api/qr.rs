//! `GET /api/v1/links/{key}/qr`: a link's short URL as a code to scan.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use curt_core::Scope;
use curt_links::Who;
use data_encoding::HEXLOWER;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use sha2::{Digest, Sha256};

use super::documented::QrProblems;
use super::links::known_key;
use crate::caller::Caller;
use crate::problem::{Problem, ProblemCode};
use crate::qr::{self, QrError, QrFormat, QrParams, QrPicture, QrStyle};
use crate::state::App;

/// Kept by the browser that asked, and asked for again with its tag: rights end at once, and nothing is sent twice.
const CACHED: &str = "private, no-cache";
/// A drawing that is opened by itself runs nothing; its logo is within it.
const DRAWING_POLICY: &str = "default-src 'none'; img-src data:; frame-ancestors 'none'";

/// Draw a link's QR code
///
/// The short URL as a code to scan, for those who may read the link. The same link and parameters give the same picture.
#[utoipa::path(
    get,
    path = "/api/v1/links/{key}/qr",
    tag = "links",
    operation_id = "getLinkQr",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        QrParams,
        ("If-None-Match" = Option<String>, Header, nullable = false, example = "\"0123456789abcdef\"",
            description = "An ETag that you have; the answer is 304 if it is still the picture's."),
    ),
    responses(
        (status = 200, description = "The picture.", headers(
            ("ETag" = String, description = "A tag of the picture."),
            ("Cache-Control" = String, description = "`private, no-cache`: ask again with the tag.")),
            content(
                (String = "image/svg+xml"),
                (Vec<u8> = "image/png"),
                (String = "text/plain"),
            )),
        (status = 304, description = "The picture has not changed."),
        QrProblems,
    ),
)]
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let style = QrStyle::parse(uri.query().unwrap_or_default(), None);
    answer(&app, key, &caller, style, &headers).await
}

/// The same for the link's page, as `/links/{key}/qr.svg`.
pub(crate) async fn read_svg(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let style = QrStyle::parse(uri.query().unwrap_or_default(), Some(QrFormat::Svg));
    answer(&app, key, &caller, style, &headers).await
}

/// The same as `/links/{key}/qr.png`.
pub(crate) async fn read_png(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let style = QrStyle::parse(uri.query().unwrap_or_default(), Some(QrFormat::Png));
    answer(&app, key, &caller, style, &headers).await
}

async fn answer(
    app: &Arc<App>,
    key: Result<Path<String>, PathRejection>,
    caller: &Caller,
    style: Result<QrStyle, Problem>,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(app, Scope::Read).await?;
    let style = style?;
    let link = app
        .links
        .get(Who::reachable_by(&principal), &known_key(key)?)
        .await?;
    let short_url = app.public.short_url(link.id.key.as_str());
    let drawing = {
        let app = Arc::clone(app);
        // Some milliseconds of work, and for the largest some tens: a few at a time, as with other long answers.
        async move { draw(&app, &short_url, &style) }
    };
    let picture = app.scans.read(principal.user, drawing).await??;
    respond(picture, headers)
}

fn draw(app: &App, short_url: &str, style: &QrStyle) -> Result<QrPicture, Problem> {
    let logo = app.settings.pages.qr_logo();
    let logo = match style.logo {
        Some(true) if logo.is_none() => {
            let why = "This server has no logo: the setting pages.qr_logo names one.";
            return Err(Problem::invalid_field("logo", "unavailable", why));
        }
        Some(false) => None,
        _ => logo,
    };
    qr::draw(short_url, style, logo).map_err(|error| match error {
        QrError::TooSmall(least) => {
            let why = format!("This code needs a size of {least} and more.");
            Problem::invalid_field("size", "too_small", why)
        }
        QrError::TooLong => {
            let why = "The short URL is too long for this correction: choose L.";
            Problem::invalid_field("error_correction", "too_long", why)
        }
        QrError::TooLongForLogo => {
            let why = "The short URL is too long for a code with a logo: leave the logo out.";
            Problem::invalid_field("logo", "too_long", why)
        }
        QrError::Encoding => Problem::new(ProblemCode::Internal),
    })
}

fn respond(picture: QrPicture, headers: &HeaderMap) -> Result<Response, Problem> {
    let digest = HEXLOWER.encode(&Sha256::digest(&picture.bytes)[..16]);
    let etag = format!("\"{digest}\"");
    let is_known = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.trim() == "*" || value.contains(&etag));
    let etag = HeaderValue::try_from(etag).map_err(|_| Problem::new(ProblemCode::Internal))?;
    let fields = [
        (CACHE_CONTROL, HeaderValue::from_static(CACHED)),
        (ETAG, etag),
    ];
    if is_known {
        return Ok((StatusCode::NOT_MODIFIED, fields).into_response());
    }
    let content = [
        (CONTENT_TYPE, picture.media_type),
        (CONTENT_SECURITY_POLICY, DRAWING_POLICY),
    ];
    Ok((fields, content, picture.bytes).into_response())
}
