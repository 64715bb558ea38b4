//! The form that asks for a link's password.

use askama::Template;
use axum::response::Response;
use http::StatusCode;

use super::form::Mistakes;
use super::frame::Frame;
use super::{page_leading_away, refused};
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::App;

#[derive(Template)]
#[template(path = "unlock.html")]
struct UnlockPage {
    frame: Frame,
    action: String,
    mistakes: Mistakes,
}

/// Why the form is shown.
pub(crate) enum UnlockReason {
    First,
    WrongPassword,
    /// Too many were wrong: the form stays, so that it can be sent again later.
    Limited(Problem),
}

/// `address` is the link's own path, with the query that it was followed with.
pub(crate) fn unlock_page(
    app: &App,
    caller: &Caller,
    address: String,
    reason: UnlockReason,
) -> Response {
    let mut shown = UnlockPage {
        // Whoever guesses passwords would have us look up sessions as often.
        frame: Frame::unknown(app, caller),
        action: address,
        mistakes: Mistakes::default(),
    };
    match reason {
        UnlockReason::First => page_leading_away(StatusCode::UNAUTHORIZED, &shown),
        UnlockReason::WrongPassword => {
            let wrong = "That is not the password of this link.";
            shown.mistakes.add("password", wrong);
            page_leading_away(StatusCode::UNAUTHORIZED, &shown)
        }
        UnlockReason::Limited(problem) => {
            shown.mistakes = Mistakes::of_problem(&problem);
            refused(problem, |status| page_leading_away(status, &shown))
        }
    }
}
