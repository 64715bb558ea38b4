//! The form that changes a link. It knows which revision it shows: when somebody else has changed the link meanwhile, both
//! versions are shown side by side, and nothing is lost.

use std::sync::Arc;

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use curt_core::{Link, Revision, Scope, Visibility};
use curt_links::{LinkEdit, Who};
use http::{StatusCode, Uri};

use super::fields::{ChangedField, LinkFields};
use super::permissions::PermissionRow;
use super::{LinkHead, PostedForm, find, is_admin, permissions, posted_about, said};
use crate::api::revision::tag;
use crate::caller::Caller;
use crate::pages::expiry_choice::{Choice, choice};
use crate::pages::form::{Form, Mistakes, see_other};
use crate::pages::frame::Frame;
use crate::pages::turned::{Turned, signed_in};
use crate::pages::visitor::Visitor;
use crate::pages::{links, page, refused};
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

/// As the form shows them.
const ORDER: [&str; 11] = [
    "target",
    "title",
    "tags",
    "expires_at",
    "valid_since",
    "visibility",
    "password",
    "max_clicks",
    "redirect_status",
    "forward_query",
    "email",
];

#[derive(Template)]
#[template(path = "link_edit.html")]
struct EditPage {
    frame: Frame,
    csrf: String,
    head: LinkHead,
    is_admin: bool,
    /// Whether there is a password now.
    has_password: bool,
    fields: LinkFields,
    /// What the form shows is based on this.
    was: LinkFields,
    revision: String,
    visibilities: [Choice; 3],
    statuses: [Choice; 4],
    permissions: Vec<PermissionRow>,
    outcome: EditOutcome,
}

/// What the form that was just sent came to.
#[derive(Default)]
pub(super) struct EditOutcome {
    pub(super) said: Option<&'static str>,
    pub(super) mistakes: Mistakes,
    /// What others changed since the form was opened.
    pub(super) changed: Vec<ChangedField>,
    /// What was typed into the other form of the page.
    pub(super) email: String,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Turned> {
    let visitor = signed_in(&app, &caller, &uri).await?;
    let link = find(&app, &visitor.principal, key).await?;
    let query = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let outcome = EditOutcome {
        said: said(&query.text("done")),
        ..EditOutcome::default()
    };
    let fields = LinkFields::of_link(&link);
    let shown = edit_page(&app, &visitor, &link, fields, outcome).await?;
    Ok(page(StatusCode::OK, &shown))
}

pub(super) async fn save(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let posted = posted_about(&app, &caller, key, request, Scope::Manage).await?;
    let PostedForm {
        visitor,
        link,
        form,
    } = posted;
    let mine = LinkFields::of_form(&form, "");
    if form.text("revision") != tag(link.revision) {
        return Ok(conflicting(&app, &visitor, &form, mine, &link).await?);
    }
    let edit = match mine.edit_of(&LinkFields::of_link(&link), form.secret("password")) {
        Ok(edit) => edit,
        Err(mistakes) => {
            let problem = Problem::invalid(mistakes);
            return Ok(mistaken(&app, &visitor, &link, mine, problem).await?);
        }
    };
    let key = link.id.key.to_string();
    match change(&app, &caller, &visitor, &key, link.revision, edit).await {
        Ok(_) => Ok(see_other(&format!("{}/{key}?done=saved", links::PATH))),
        Err(problem) if problem.code() == ProblemCode::StaleRevision => {
            let now = find(&app, &visitor.principal, Ok(Path(key))).await?;
            Ok(conflicting(&app, &visitor, &form, mine, &now).await?)
        }
        Err(problem) => Ok(mistaken(&app, &visitor, &link, mine, problem).await?),
    }
}

async fn change(
    app: &Arc<App>,
    caller: &Caller,
    visitor: &Visitor,
    key: &str,
    seen: Revision,
    edit: LinkEdit,
) -> Result<Link, Problem> {
    let (app, caller, principal) = (Arc::clone(app), caller.clone(), visitor.principal.clone());
    let key = key.to_owned();
    run_to_completion(async move {
        let who = Who::reachable_by(&principal);
        let editor = caller.link_caller(Some(&principal));
        let operations = app.link_operations();
        operations
            .edit_link(editor, who, &key, Some(seen), edit)
            .await
    })
    .await
}

/// Both versions, put together as far as they can be; what was typed is in the form, now based on the link as it is.
async fn conflicting(
    app: &App,
    visitor: &Visitor,
    form: &Form,
    mut mine: LinkFields,
    now: &Link,
) -> Result<Response, Problem> {
    let was = LinkFields::of_form(form, "was_");
    let changed = mine.merge(&was, &LinkFields::of_link(now));
    let outcome = EditOutcome {
        changed,
        ..EditOutcome::default()
    };
    let shown = edit_page(app, visitor, now, mine, outcome).await?;
    Ok(page(StatusCode::PRECONDITION_FAILED, &shown))
}

async fn mistaken(
    app: &App,
    visitor: &Visitor,
    link: &Link,
    mine: LinkFields,
    problem: Problem,
) -> Result<Response, Problem> {
    let named = problem.clone().rename_fields(|field| match field {
        "status" => Some("redirect_status"),
        _ => None,
    });
    let outcome = EditOutcome {
        mistakes: Mistakes::of_problem(&named).in_order(&ORDER),
        ..EditOutcome::default()
    };
    let shown = edit_page(app, visitor, link, mine, outcome).await?;
    Ok(refused(problem, |status| page(status, &shown)))
}

/// The page again, because the form about permissions was refused.
pub(super) async fn refuse_permission(
    app: &App,
    visitor: &Visitor,
    link: &Link,
    email: String,
    problem: Problem,
) -> Result<Response, Problem> {
    let outcome = EditOutcome {
        mistakes: Mistakes::of_problem(&problem).in_order(&ORDER),
        email,
        ..EditOutcome::default()
    };
    let fields = LinkFields::of_link(link);
    let shown = edit_page(app, visitor, link, fields, outcome).await?;
    Ok(refused(problem, |status| page(status, &shown)))
}

async fn edit_page(
    app: &App,
    visitor: &Visitor,
    link: &Link,
    fields: LinkFields,
    outcome: EditOutcome,
) -> Result<EditPage, Problem> {
    let permissions = match link.visibility {
        Visibility::Private => permissions::rows(app, visitor, link).await?,
        Visibility::Public | Visibility::Password => Vec::new(),
    };
    Ok(EditPage {
        frame: Frame::new(app, Some(visitor)).within(links::PATH),
        csrf: visitor.csrf.clone(),
        head: LinkHead::read(app, visitor, link).await?,
        is_admin: is_admin(visitor),
        has_password: link.password_hash.is_some(),
        was: LinkFields::of_link(link),
        fields,
        revision: tag(link.revision),
        visibilities: [
            choice("public", "Everybody"),
            choice("private", "Only you, and whom you permit"),
            choice("password", "Whoever knows the password"),
        ],
        statuses: [
            choice("302", "302: found; browsers ask again each time"),
            choice("307", "307: as 302, and keeps the method"),
            choice("301", "301: moved for good; browsers remember"),
            choice("308", "308: as 301, and keeps the method"),
        ],
        permissions,
        outcome,
    })
}
