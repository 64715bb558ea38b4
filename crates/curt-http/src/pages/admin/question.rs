//! The question before something that touches somebody else.

use askama::Template;
use axum::response::Response;
use http::StatusCode;

use super::frame;
use crate::pages::frame::Frame;
use crate::pages::page;
use crate::pages::visitor::Visitor;
use crate::state::App;

/// What is asked, and the form that says yes with the same fields.
pub(super) struct AdminQuestion {
    pub(super) question: String,
    pub(super) consequence: String,
    pub(super) yes: &'static str,
    pub(super) action: String,
    pub(super) fields: Vec<(&'static str, String)>,
    pub(super) back: String,
}

#[derive(Template)]
#[template(path = "admin_confirm.html")]
struct AdminConfirmPage<'a> {
    frame: Frame,
    csrf: &'a str,
    asked: &'a AdminQuestion,
}

impl AdminQuestion {
    pub(super) fn ask(&self, app: &App, administrator: &Visitor) -> Response {
        let shown = AdminConfirmPage {
            frame: frame(app, administrator),
            csrf: &administrator.csrf,
            asked: self,
        };
        page(StatusCode::OK, &shown)
    }
}
