//! `/sign-up` and `/setup`: how people, and the first of them, make their accounts.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::{NewPerson, SignUp};
use http::{StatusCode, Uri};

use super::assets::Assets;
use super::form::{Form, Mistakes, see_other};
use super::sign_in::{agent, come_in, posted};
use super::{VERSION, page, refused};
use crate::api::with_cookies;
use crate::caller::Caller;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

#[derive(Template)]
#[template(path = "sign_up.html")]
struct SignUpPage {
    assets: &'static Assets,
    version: &'static str,
    door: Door,
    typed: Typed,
    mistakes: Mistakes,
}

/// What lets somebody make an account.
#[derive(Clone)]
enum Door {
    /// The code of an invitation, where one is needed or shown.
    Invite { code: String, is_asked: bool },
    /// The token that was printed when the server was started for the first time.
    Setup { token: String },
}

/// What was typed, to be shown again; never the password.
#[derive(Default)]
struct Typed {
    first_name: String,
    middle_name: String,
    last_name: String,
    email: String,
}

impl Typed {
    fn of(form: &Form) -> Self {
        Self {
            first_name: form.text("first_name"),
            middle_name: form.text("middle_name"),
            last_name: form.text("last_name"),
            email: form.text("email"),
        }
    }

    fn person(&self, form: &Form) -> NewPerson {
        NewPerson {
            first_name: self.first_name.clone(),
            middle_name: Some(self.middle_name.clone()),
            last_name: self.last_name.clone(),
            email: self.email.clone(),
            password: form.secret("password").to_owned(),
        }
    }
}

impl SignUpPage {
    fn new(door: Door) -> Self {
        Self {
            assets: Assets::addresses(),
            version: VERSION,
            door,
            typed: Typed::default(),
            mistakes: Mistakes::default(),
        }
    }
}

pub(super) async fn show(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let asked = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let door = invited(&app, asked.text("invite"))?;
    Ok(page(StatusCode::OK, &SignUpPage::new(door)))
}

pub(super) async fn sign_up(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let agent = agent(request.headers());
    let form = posted(&app, &caller, request).await?;
    let door = invited(&app, form.text("invite"))?;
    Ok(enter(&app, &caller, &form, agent, door).await)
}

pub(super) async fn show_setup(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let asked = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let door = first(&app, asked.text("token")).await?;
    Ok(page(StatusCode::OK, &SignUpPage::new(door)))
}

pub(super) async fn set_up(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let agent = agent(request.headers());
    let form = posted(&app, &caller, request).await?;
    let door = first(&app, form.text("token")).await?;
    Ok(enter(&app, &caller, &form, agent, door).await)
}

fn invited(app: &App, code: String) -> Result<Door, Problem> {
    let is_asked = match app.accounts.people.settings().sign_up {
        SignUp::Closed => return Err(Problem::new(ProblemCode::SignUpClosed)),
        SignUp::Invite => true,
        SignUp::Open => !code.is_empty(),
    };
    Ok(Door::Invite { code, is_asked })
}

async fn first(app: &App, token: String) -> Result<Door, Problem> {
    if app.accounts.people.is_setup_open(&token).await? {
        Ok(Door::Setup { token })
    } else {
        Err(Problem::new(ProblemCode::NotFound))
    }
}

/// Makes the account and signs its owner in.
async fn enter(
    app: &Arc<App>,
    caller: &Caller,
    form: &Form,
    agent: String,
    door: Door,
) -> Response {
    let typed = Typed::of(form);
    let tried = async {
        caller.may_sign_up(app).await?;
        let new = typed.person(form);
        let (email, password) = (new.email.clone(), new.password.clone());
        make(app, caller, new, door.clone()).await?;
        come_in(app, caller, email, password, agent).await
    };
    match tried.await {
        Ok(cookies) => with_cookies(see_other("/account?done=welcome"), cookies),
        // Somebody was faster: there is nothing to set up any more.
        Err(problem) if problem.code() == ProblemCode::NotFound => problem.into_response(),
        Err(problem) => {
            let shown = SignUpPage {
                typed,
                mistakes: Mistakes::of_problem(&problem),
                ..SignUpPage::new(door)
            };
            refused(problem, |status| page(status, &shown))
        }
    }
}

async fn make(app: &App, caller: &Caller, new: NewPerson, door: Door) -> Result<(), Problem> {
    let people = Arc::clone(&app.accounts.people);
    let origin = caller.origin();
    run_to_completion(async move {
        match door {
            Door::Invite { code, .. } => {
                let code = Some(code).filter(|code| !code.is_empty());
                people.sign_up(&new, code.as_deref(), origin).await
            }
            Door::Setup { token } => people.set_up(&token, &new, origin).await,
        }
    })
    .await
    .map(drop)
}
