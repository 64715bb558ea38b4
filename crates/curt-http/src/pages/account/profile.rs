//! Names, email, password and sessions.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use curt_accounts::{UserEdit, UserRef};

use super::view::readable_browser;
use super::{Turned, done, failed, posted};
use crate::caller::Caller;
use crate::pages::confirm::Question;
use crate::pages::form::Form;
use crate::pages::visitor::Visitor;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

pub(super) async fn edit(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let (visitor, form) = posted(&app, &caller, request).await?;
    let edit = UserEdit {
        first_name: Some(form.text("first_name")),
        middle_name: Some(Some(form.text("middle_name"))),
        last_name: Some(form.text("last_name")),
        email: Some(form.text("email")),
        ..UserEdit::default()
    };
    Ok(match change(&app, &caller, &visitor, &form, edit).await {
        Ok(()) => done("profile"),
        Err(problem) => failed(&app, &visitor, &form, problem).await,
    })
}

/// A new email is what one signs in with from then on, and so asks for the password.
async fn change(
    app: &App,
    caller: &Caller,
    visitor: &Visitor,
    form: &Form,
    edit: UserEdit,
) -> Result<(), Problem> {
    let users = Arc::clone(&app.accounts.users);
    let id = visitor.principal.user;
    if users.changes_email(id, &form.text("email")).await? {
        let password = form.secret("current_password");
        let checked = caller.check_password(app, id, password).await;
        checked.map_err(|problem| match problem.code() {
            ProblemCode::WrongCredentials => Problem::invalid_field(
                "current_password",
                "wrong",
                "This is not your password. A new email needs it.",
            ),
            _ => problem,
        })?;
    }
    let origin = caller.origin().by(id);
    run_to_completion(async move { users.edit(UserRef::Id(id), &edit, None, origin).await })
        .await
        .map(drop)
}

pub(super) async fn change_password(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let (visitor, form) = posted(&app, &caller, request).await?;
    Ok(match new_password(&app, &caller, &visitor, &form).await {
        Ok(()) => done("password"),
        Err(problem) => failed(&app, &visitor, &form, problem).await,
    })
}

/// Whoever found an open browser must not guess the password in it faster than at the door.
async fn new_password(
    app: &App,
    caller: &Caller,
    visitor: &Visitor,
    form: &Form,
) -> Result<(), Problem> {
    if form.secret("new_password") != form.secret("new_password_again") {
        let message = "This is not the same as the new password above.";
        return Err(Problem::invalid_field(
            "new_password_again",
            "differs",
            message,
        ));
    }
    let services = app.accounts.clone();
    let id = visitor.principal.user;
    let origin = caller.origin().by(id);
    let revokes = form.all("revoke_api_keys").next().is_some();
    let this_one = visitor.principal.session().map(str::to_owned);
    let old = form.secret("old_password").to_owned();
    let new = form.secret("new_password").to_owned();
    let changed = run_to_completion(async move {
        let keep = this_one.as_deref();
        let users = &services.users;
        users.change_password(id, &old, &new, keep, origin).await?;
        services.revoke_keys_if(revokes, id, origin).await
    });
    let changed = caller.guess_password(app, id, changed).await;
    changed.map_err(|problem| match problem.code() {
        ProblemCode::WrongCredentials => {
            Problem::invalid_field("old_password", "wrong", "This is not your password.")
        }
        _ => problem.rename_fields(|field| (field == "password").then_some("new_password")),
    })
}

pub(super) async fn end_session(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let (visitor, form) = posted(&app, &caller, request).await?;
    let users = Arc::clone(&app.accounts.users);
    let id = visitor.principal.user;
    let origin = caller.origin().by(id);
    let session = form.text("session");
    if !Question::is_answered(&form) {
        let sessions = users.sessions(id).await.map_err(Problem::from)?;
        let found = sessions.iter().find(|held| *held.id == *session);
        let Some(found) = found else {
            let problem = Problem::new(ProblemCode::NotFound);
            return Ok(failed(&app, &visitor, &form, problem).await);
        };
        let browser = readable_browser(&app.click_rules(), &found.agent);
        let question = Question {
            question: format!("Sign out {browser}?"),
            consequence: "Whoever uses that browser has to sign in again.".to_owned(),
            yes: "Sign out",
            action: "/account/sessions/end",
            field: "session",
            value: &session,
            back: "/account#sessions",
        };
        return Ok(question.ask(&app, &visitor));
    }
    let ended =
        run_to_completion(async move { users.end_session(id, &session, origin).await }).await;
    Ok(match ended {
        Ok(()) => done("session"),
        Err(problem) => failed(&app, &visitor, &form, problem).await,
    })
}
