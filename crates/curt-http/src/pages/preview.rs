//! `/{key}+`: where a link leads, for visitors who would rather know first.

use askama::Template;
use axum::response::Response;
use curt_core::Link;
use http::StatusCode;
use url::Url;

use super::frame::Frame;
use super::{PageTime, page};
use crate::caller::Caller;
use crate::state::App;

#[derive(Template)]
#[template(path = "preview.html")]
struct PreviewPage {
    frame: Frame,
    short_url: String,
    key: String,
    title: Option<String>,
    /// What is before the host, the host, and what is behind it.
    target: [String; 3],
    host: String,
    made: PageTime,
}

/// The page about a link that is for everybody.
pub(crate) fn preview_page(app: &App, caller: &Caller, link: &Link) -> Response {
    let target = link.target.as_str();
    let url = Url::parse(target).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let parts = match target.split_once(host) {
        Some((before, behind)) if !host.is_empty() => {
            [before.to_owned(), host.to_owned(), behind.to_owned()]
        }
        _ => [String::new(), String::new(), target.to_owned()],
    };
    let key = link.id.key.as_str();
    let shown = PreviewPage {
        // A page for everybody: who asks does not matter, and is not looked up.
        frame: Frame::unknown(app, caller),
        short_url: app.public.short_url(key),
        key: key.to_owned(),
        title: link.title.as_deref().map(str::to_owned),
        target: parts,
        host: host.to_owned(),
        made: link.created_at.into(),
    };
    page(StatusCode::OK, &shown)
}
