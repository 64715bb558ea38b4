//! The form that asks for a link's password.

use askama::Template;
use axum::response::Response;
use http::StatusCode;

use super::assets::Assets;
use super::{VERSION, page_leading_away};

#[derive(Template)]
#[template(path = "unlock.html")]
struct UnlockPage {
    assets: &'static Assets,
    version: &'static str,
    action: String,
    tried: bool,
}

pub(crate) fn unlock_page(key: &str, query: Option<&str>, tried: bool) -> Response {
    let action = match query {
        Some(query) => format!("/{key}?{query}"),
        None => format!("/{key}"),
    };
    page_leading_away(
        StatusCode::UNAUTHORIZED,
        &UnlockPage {
            assets: Assets::addresses(),
            version: VERSION,
            action,
            tried,
        },
    )
}
