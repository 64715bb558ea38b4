//! Style sheet, script and icon, under addresses that change with their content, so that browsers may keep them for
//! ever.

use std::sync::{Arc, LazyLock};

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

use super::brand::PageSettings;
use crate::compression::StaticText;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;

const FOR_EVER: &str = "public, max-age=31536000, immutable";
const ONE_DAY: &str = "public, max-age=86400";

#[derive(Clone, Debug)]
pub(super) struct Asset {
    /// The last part of its address.
    name: String,
    media_type: &'static str,
    pub(super) content: StaticText,
}

impl Asset {
    pub(super) fn new(
        stem: &str,
        ending: &str,
        media_type: &'static str,
        content: impl Into<Bytes>,
    ) -> Self {
        let content = content.into();
        let digest = HEXLOWER.encode(&Sha256::digest(&content)[..8]);
        Self {
            name: format!("{stem}-{digest}.{ending}"),
            media_type,
            content: StaticText::new(content),
        }
    }

    /// The address that pages refer to it by.
    pub(super) fn address(&self) -> String {
        format!("/assets/{}", self.name)
    }

    /// Each form has a tag of its own, because the bytes differ.
    fn respond(&self, app: &App, headers: &HeaderMap, cache_control: &'static str) -> Response {
        let form = self.content.choose(app, headers);
        let etag = match form.is_gzip() {
            true => format!("\"{}.gz\"", self.name),
            false => format!("\"{}\"", self.name),
        };
        let known = headers
            .get_all(IF_NONE_MATCH)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.contains(&etag));
        let fields = [
            (CACHE_CONTROL, HeaderValue::from_static(cache_control)),
            (CONTENT_TYPE, HeaderValue::from_static(self.media_type)),
            (
                ETAG,
                HeaderValue::try_from(etag).unwrap_or(HeaderValue::from_static("\"\"")),
            ),
        ];
        if known {
            let mut response = (StatusCode::NOT_MODIFIED, fields).into_response();
            form.describe(response.headers_mut());
            return response;
        }
        (fields, form.respond()).into_response()
    }
}

static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let content = concat!(
        include_str!("../../assets/curt.css"),
        include_str!("../../assets/dashboard.css"),
        include_str!("../../assets/admin.css"),
    );
    Asset::new("curt", "css", "text/css; charset=utf-8", content)
});
static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let content = concat!(
        include_str!("../../assets/curt.js"),
        include_str!("../../assets/dashboard.js"),
    );
    Asset::new("curt", "js", "text/javascript; charset=utf-8", content)
});
static ICON: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_str!("../../assets/curt.svg");
    Asset::new("curt", "svg", "image/svg+xml", content)
});

/// The addresses that pages refer to.
pub(super) struct Assets {
    pub(super) style: String,
    /// Behind the style, in the colour of the installation.
    pub(super) theme: Option<String>,
    pub(super) script: String,
    pub(super) icon: String,
}

impl Assets {
    pub(super) fn of(settings: &PageSettings) -> Self {
        let theme = settings.theme.as_ref();
        Self {
            style: STYLE.address(),
            theme: theme.map(|theme| theme.style.address()),
            script: SCRIPT.address(),
            icon: icon(settings).address(),
        }
    }
}

fn icon(settings: &PageSettings) -> &Asset {
    settings.theme.as_ref().map_or(&ICON, |theme| &theme.icon)
}

pub(super) async fn serve(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let theme = app.settings.pages.theme.iter();
    [&*STYLE, &*SCRIPT, &*ICON]
        .into_iter()
        .chain(theme.flat_map(|theme| [&theme.style, &theme.icon]))
        .find(|asset| asset.name == name)
        .map_or_else(
            || Problem::new(ProblemCode::NotFound).into_response(),
            |asset| asset.respond(&app, &headers, FOR_EVER),
        )
}

/// Browsers that were not told about the icon look for it here.
pub(super) async fn favicon(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    icon(&app.settings.pages).respond(&app, &headers, ONE_DAY)
}

/// Short links are for following, not for indexing; each redirect says so itself, and crawlers must be able to read
/// that.
pub(super) async fn robots() -> Response {
    let fields = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CACHE_CONTROL, ONE_DAY),
    ];
    (
        fields,
        "User-agent: *\nDisallow: /api/\nDisallow: /health/\n",
    )
        .into_response()
}
