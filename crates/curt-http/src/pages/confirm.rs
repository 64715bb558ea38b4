//! The question before something that cannot be undone. It is a page of its own, so that it works without scripts.

use askama::Template;
use axum::response::Response;
use http::StatusCode;

use super::form::Form;
use super::frame::Frame;
use super::page;
use super::visitor::Visitor;
use crate::state::App;

/// What is asked, and the form that says yes.
pub(super) struct Question<'a> {
    pub(super) question: String,
    pub(super) consequence: String,
    pub(super) yes: &'static str,
    /// Where the answer goes, with one field that says about what.
    pub(super) action: &'a str,
    pub(super) field: &'static str,
    pub(super) value: &'a str,
    /// Where a visitor who says no goes.
    pub(super) back: &'a str,
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage<'a> {
    frame: Frame,
    csrf: &'a str,
    asked: &'a Question<'a>,
}

impl Question<'_> {
    /// Whether the form is the answer to the question.
    pub(super) fn is_answered(form: &Form) -> bool {
        form.text("confirmed") == "yes"
    }

    pub(super) fn ask(&self, app: &App, visitor: &Visitor) -> Response {
        self.ask_at("/account", app, visitor)
    }

    /// Asks on a page that the menu marks as part of `here`.
    pub(super) fn ask_at(&self, here: &'static str, app: &App, visitor: &Visitor) -> Response {
        let shown = ConfirmPage {
            frame: Frame::new(app, Some(visitor)).at(here),
            csrf: &visitor.csrf,
            asked: self,
        };
        page(StatusCode::OK, &shown)
    }
}
