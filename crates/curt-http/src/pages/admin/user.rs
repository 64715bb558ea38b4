//! `/admin/users/{id}`: one user.

use std::sync::Arc;

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::{AccountError, UserEdit, UserRef};
use curt_core::{OwnerId, Role, User};
use curt_links::LinksOfLeaver;
use http::{StatusCode, Uri};

use super::limits::{parse_rate, rate_text};
use super::question::AdminQuestion;
use super::users::{PATH, name_of};
use super::{AdminBar, Refused, administrator, frame, posted};
use crate::api::{UserId, removal_refused};
use crate::caller::Caller;
use crate::pages::confirm::Question;
use crate::pages::form::{Form, see_other};
use crate::pages::frame::Frame;
use crate::pages::visitor::Visitor;
use crate::pages::{PageTime, page, refused};
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

type IdPath = Result<Path<String>, PathRejection>;

#[derive(Template)]
#[template(path = "admin_user.html")]
struct UserPage {
    frame: Frame,
    bar: AdminBar,
    id: u64,
    name: String,
    email: String,
    is_admin: bool,
    is_disabled: bool,
    is_self: bool,
    since: PageTime,
    creations: String,
    redirections: String,
    heir: String,
}

impl UserPage {
    fn new(app: &App, administrator: &Visitor, user: &User, bar: AdminBar) -> Self {
        let limit = |rule: Option<_>| rule.map(rate_text).unwrap_or_default();
        Self {
            frame: frame(app, administrator),
            bar,
            id: user.id.0,
            name: name_of(user),
            email: user.email.to_string(),
            is_admin: user.role == Role::Admin,
            is_disabled: user.disabled_at.is_some(),
            is_self: user.id == administrator.principal.user,
            since: user.created_at.into(),
            creations: limit(user.allowance.creations),
            redirections: limit(user.allowance.redirections),
            heir: String::new(),
        }
    }
}

fn parse_id(id: IdPath) -> Result<OwnerId, Problem> {
    let absent = || Problem::new(ProblemCode::NotFound);
    let Path(text) = id.map_err(|_| absent())?;
    UserId::parse(&text).map(|id| id.0).ok_or_else(absent)
}

fn address(id: OwnerId, done: &str) -> Response {
    see_other(&format!("{PATH}/{id}?done={done}"))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    id: IdPath,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Refused> {
    let administrator = administrator(&app, &caller, &uri).await?;
    let user = app.accounts.users.get(UserRef::Id(parse_id(id)?)).await?;
    let bar = AdminBar::new(PATH, &administrator).said(&uri);
    let shown = UserPage::new(&app, &administrator, &user, bar);
    Ok(page(StatusCode::OK, &shown))
}

/// The page again, with what was wrong and what was typed.
async fn again(
    app: &App,
    administrator: &Visitor,
    id: OwnerId,
    form: &Form,
    problem: Problem,
) -> Result<Response, Refused> {
    let user = app.accounts.users.get(UserRef::Id(id)).await?;
    let bar = AdminBar::new(PATH, administrator).failed(&problem);
    let mut shown = UserPage::new(app, administrator, &user, bar);
    if form.all("creations").next().is_some() {
        shown.creations = form.text("creations");
        shown.redirections = form.text("redirections");
    }
    shown.heir = form.text("links_to");
    Ok(refused(problem, |status| page(status, &shown)).into_response())
}

pub(super) async fn edit(
    State(app): State<Arc<App>>,
    id: IdPath,
    caller: Caller,
    request: Request,
) -> Result<Response, Refused> {
    let (administrator, form) = posted(&app, &caller, request).await?;
    let id = parse_id(id)?;
    let edit = match read_edit(&administrator, id, &form) {
        Ok(edit) => edit,
        Err(problem) => return again(&app, &administrator, id, &form, problem).await,
    };
    let origin = caller.origin().by(administrator.principal.user);
    let working = Arc::clone(&app);
    let edited = run_to_completion(async move {
        let users = &working.accounts.users;
        users.edit(UserRef::Id(id), &edit, None, origin).await?;
        working.refresh_limited().await?;
        Ok::<_, AccountError>(())
    });
    match edited.await {
        Ok(()) => Ok(address(id, "saved")),
        Err(problem) => again(&app, &administrator, id, &form, problem).await,
    }
}

/// Nobody changes their own role: the last administrator could not come back.
fn read_edit(administrator: &Visitor, id: OwnerId, form: &Form) -> Result<UserEdit, Problem> {
    let role = match form.secret("role") {
        "" => None,
        _ if id == administrator.principal.user => None,
        name => {
            let wrong = || Problem::invalid_field("role", "value", "Choose one of the list.");
            Some(Role::from_name(name).ok_or_else(wrong)?)
        }
    };
    Ok(UserEdit {
        role,
        creations: Some(parse_rate("creations", &form.text("creations"))?),
        redirections: Some(parse_rate("redirections", &form.text("redirections"))?),
        ..UserEdit::default()
    })
}

pub(super) async fn switch(
    State(app): State<Arc<App>>,
    id: IdPath,
    caller: Caller,
    request: Request,
) -> Result<Response, Refused> {
    let (administrator, form) = posted(&app, &caller, request).await?;
    let user = find_other(&app, &administrator, id).await?;
    let id = user.id;
    let disables = form.secret("disabled") == "yes";
    if disables && !Question::is_answered(&form) {
        let question = AdminQuestion {
            question: format!("Disable {}?", name_of(&user)),
            consequence: "They are signed out everywhere, and programs with their API keys stop working, until they are \
                          enabled again."
                .to_owned(),
            yes: "Disable",
            action: format!("{PATH}/{id}/switch"),
            fields: vec![("disabled", "yes".to_owned())],
            back: format!("{PATH}/{id}"),
        };
        return Ok(question.ask(&app, &administrator));
    }
    let origin = caller.origin().by(administrator.principal.user);
    let working = Arc::clone(&app);
    let switched = run_to_completion(async move {
        let users = &working.accounts.users;
        match disables {
            true => users.disable(UserRef::Id(id), origin).await?,
            false => users.enable(UserRef::Id(id), origin).await?,
        };
        working.refresh_limited().await?;
        Ok::<_, AccountError>(())
    });
    match (switched.await, disables) {
        (Ok(()), true) => Ok(address(id, "disabled")),
        (Ok(()), false) => Ok(address(id, "enabled")),
        (Err(problem), _) => again(&app, &administrator, id, &form, problem).await,
    }
}

/// The user that a form is about, who must not be the administrator themselves.
async fn find_other(app: &App, administrator: &Visitor, id: IdPath) -> Result<User, Problem> {
    let user = app.accounts.users.get(UserRef::Id(parse_id(id)?)).await?;
    if user.id == administrator.principal.user {
        let why = "Administrators cannot do this to themselves: ask another one.";
        return Err(Problem::invalid_field("id", "self", why));
    }
    Ok(user)
}

pub(super) async fn remove(
    State(app): State<Arc<App>>,
    id: IdPath,
    caller: Caller,
    request: Request,
) -> Result<Response, Refused> {
    let (administrator, form) = posted(&app, &caller, request).await?;
    let user = find_other(&app, &administrator, id).await?;
    let id = user.id;
    let links = match read_links(&app, &form).await {
        Ok(links) => links,
        Err(problem) => return again(&app, &administrator, id, &form, problem).await,
    };
    if !Question::is_answered(&form) {
        return Ok(ask_before_removing(&user, &form, links).ask(&app, &administrator));
    }
    let origin = caller.origin().by(administrator.principal.user);
    let working = Arc::clone(&app);
    let removed = run_to_completion(async move {
        let removed = working
            .link_operations()
            .remove_user(id, links, origin)
            .await;
        working.refresh_limited().await?;
        removed.map_err(removal_refused)
    });
    match removed.await {
        Ok(_) => Ok(see_other(&format!("{PATH}?done=removed"))),
        Err(problem) => again(&app, &administrator, id, &form, problem).await,
    }
}

/// What becomes of the links; nothing said is right for a user without any.
async fn read_links(app: &App, form: &Form) -> Result<Option<LinksOfLeaver>, Problem> {
    if form.secret("links") == "delete" {
        return Ok(Some(LinksOfLeaver::Delete));
    }
    let email = form.text("links_to");
    if email.is_empty() {
        return Ok(None);
    }
    match app.accounts.users.get(UserRef::Email(&email)).await {
        Ok(heir) => Ok(Some(LinksOfLeaver::HandOver(heir.id))),
        Err(AccountError::NotFound) => {
            let why = "Nobody has this email.";
            Err(Problem::invalid_field("links_to", "unknown_user", why))
        }
        Err(other) => Err(other.into()),
    }
}

fn ask_before_removing(user: &User, form: &Form, links: Option<LinksOfLeaver>) -> AdminQuestion {
    let heir = form.text("links_to");
    let about = match links {
        Some(LinksOfLeaver::Delete) => "their links are deleted".to_owned(),
        Some(LinksOfLeaver::HandOver(_)) => format!("their links go to {heir}"),
        None => "it is refused if they have links".to_owned(),
    };
    let choice = match links {
        Some(LinksOfLeaver::Delete) => "delete",
        _ => "hand_over",
    };
    AdminQuestion {
        question: format!("Remove {}?", name_of(user)),
        consequence: format!(
            "The account {} ends with its sessions and API keys, and {about}. There is no way back.",
            user.email
        ),
        yes: "Remove",
        action: format!("{PATH}/{}/remove", user.id),
        fields: vec![("links", choice.to_owned()), ("links_to", heir)],
        back: format!("{PATH}/{}", user.id),
    }
}
