//! `/admin/users`: everybody.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::NewUser;
use curt_core::{OwnerId, Role, User};
use http::{StatusCode, Uri};

use super::{AdminBar, Refused, administrator, frame, posted};
use crate::api::paging::PageRequest;
use crate::caller::Caller;
use crate::pages::form::{Form, see_other};
use crate::pages::frame::Frame;
use crate::pages::visitor::Visitor;
use crate::pages::{PageTime, page, refused};
use crate::problem::Problem;
use crate::state::App;
use crate::tasks::run_to_completion;

pub(super) const PATH: &str = "/admin/users";

#[derive(Template)]
#[template(path = "admin_users.html")]
struct UsersPage {
    frame: Frame,
    bar: AdminBar,
    users: Vec<ListedUser>,
    is_first: bool,
    next: Option<String>,
    typed: TypedUser,
}

struct ListedUser {
    id: u64,
    name: String,
    email: String,
    role: &'static str,
    is_disabled: bool,
    since: PageTime,
}

/// What was typed for a new account; never a password.
#[derive(Default)]
struct TypedUser {
    first_name: String,
    last_name: String,
    email: String,
}

impl ListedUser {
    fn of(user: &User) -> Self {
        Self {
            id: user.id.0,
            name: name_of(user),
            email: user.email.to_string(),
            role: user.role.name(),
            is_disabled: user.disabled_at.is_some(),
            since: user.created_at.into(),
        }
    }
}

pub(super) fn name_of(user: &User) -> String {
    format!("{} {}", user.first_name, user.last_name)
        .trim()
        .to_owned()
}

impl UsersPage {
    async fn load(
        app: &App,
        administrator: &Visitor,
        bar: AdminBar,
        cursor: Option<&str>,
    ) -> Result<Self, Problem> {
        let asked = PageRequest::parse(cursor, None)?;
        let users = Arc::clone(&app.accounts.users);
        let reading = async move {
            let after = asked.after.map(OwnerId);
            users.list(after, asked.read_max()).await
        };
        let mut users = app
            .scans
            .read(administrator.principal.user, reading)
            .await??;
        let next = asked.cut(&mut users, |user| user.id.0);
        Ok(Self {
            frame: frame(app, administrator),
            bar,
            users: users.iter().map(ListedUser::of).collect(),
            is_first: cursor.is_none(),
            next,
            typed: TypedUser::default(),
        })
    }
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Refused> {
    let administrator = administrator(&app, &caller, &uri).await?;
    let asked = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let cursor = Some(asked.text("cursor")).filter(|cursor| !cursor.is_empty());
    let bar = AdminBar::new(PATH, &administrator).said(&uri);
    let shown = UsersPage::load(&app, &administrator, bar, cursor.as_deref()).await?;
    Ok(page(StatusCode::OK, &shown))
}

pub(super) async fn add(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Refused> {
    let (administrator, form) = posted(&app, &caller, request).await?;
    let role = match form.secret("role") {
        "admin" => Role::Admin,
        _ => Role::Member,
    };
    let new = NewUser {
        first_name: form.text("first_name"),
        middle_name: None,
        last_name: form.text("last_name"),
        email: form.text("email"),
        password: form.secret("password").to_owned(),
    };
    let users = Arc::clone(&app.accounts.users);
    let origin = caller.origin().by(administrator.principal.user);
    let added = run_to_completion(async move { users.add(&new, role, origin).await }).await;
    let problem = match added {
        Ok(user) => return Ok(see_other(&format!("{PATH}/{}?done=added", user.id))),
        Err(problem) => problem,
    };
    let bar = AdminBar::new(PATH, &administrator).failed(&problem);
    let mut shown = UsersPage::load(&app, &administrator, bar, None).await?;
    shown.typed = TypedUser {
        first_name: form.text("first_name"),
        last_name: form.text("last_name"),
        email: form.text("email"),
    };
    Ok(refused(problem, |status| page(status, &shown)).into_response())
}
