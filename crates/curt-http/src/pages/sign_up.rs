//! `/sign-up` and `/setup`: how people, and the first of them, make their accounts.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::{NewUser, SignUp};
use http::{StatusCode, Uri};

use super::form::{Form, Mistakes, see_other};
use super::frame::Frame;
use super::sign_in::{begin_session, read_form, user_agent};
use super::{page, refused};
use crate::api::with_cookies;
use crate::caller::Caller;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

/// As the form shows them.
const FIELDS: [&str; 6] = [
    "invite",
    "first_name",
    "middle_name",
    "last_name",
    "email",
    "password",
];

#[derive(Template)]
#[template(path = "sign_up.html")]
struct SignUpPage {
    frame: Frame,
    sign_up_token: SignUpToken,
    typed: Typed,
    mistakes: Mistakes,
}

/// What lets somebody make an account.
#[derive(Clone)]
enum SignUpToken {
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

    fn new_user(&self, form: &Form) -> NewUser {
        NewUser {
            first_name: self.first_name.clone(),
            middle_name: Some(self.middle_name.clone()),
            last_name: self.last_name.clone(),
            email: self.email.clone(),
            password: form.secret("password").to_owned(),
        }
    }
}

impl SignUpPage {
    async fn new(app: &App, caller: &Caller, sign_up_token: SignUpToken) -> Self {
        Self {
            frame: Frame::of_caller(app, caller).await,
            sign_up_token,
            typed: Typed::default(),
            mistakes: Mistakes::default(),
        }
    }
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let asked = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let sign_up_token = invite_token(&app, asked.text("invite"))?;
    let shown = SignUpPage::new(&app, &caller, sign_up_token).await;
    Ok(page(StatusCode::OK, &shown))
}

pub(super) async fn sign_up(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let agent = user_agent(request.headers());
    let form = read_form(&app, &caller, request).await?;
    let sign_up_token = invite_token(&app, form.text("invite"))?;
    Ok(handle_sign_up(&app, &caller, &form, agent, sign_up_token).await)
}

pub(super) async fn show_setup(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let asked = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let sign_up_token = setup_token(&app, asked.text("token")).await?;
    let shown = SignUpPage::new(&app, &caller, sign_up_token).await;
    Ok(page(StatusCode::OK, &shown))
}

pub(super) async fn set_up(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let agent = user_agent(request.headers());
    let form = read_form(&app, &caller, request).await?;
    let sign_up_token = setup_token(&app, form.text("token")).await?;
    Ok(handle_sign_up(&app, &caller, &form, agent, sign_up_token).await)
}

fn invite_token(app: &App, code: String) -> Result<SignUpToken, Problem> {
    let is_asked = match app.accounts.users.settings().sign_up {
        SignUp::Closed => return Err(Problem::new(ProblemCode::SignUpClosed)),
        SignUp::Invite => true,
        SignUp::Open => !code.is_empty(),
    };
    Ok(SignUpToken::Invite { code, is_asked })
}

async fn setup_token(app: &App, token: String) -> Result<SignUpToken, Problem> {
    if app.accounts.users.is_setup_open(&token).await? {
        Ok(SignUpToken::Setup { token })
    } else {
        Err(Problem::new(ProblemCode::NotFound))
    }
}

/// Makes the account and signs its owner in.
async fn handle_sign_up(
    app: &Arc<App>,
    caller: &Caller,
    form: &Form,
    agent: String,
    sign_up_token: SignUpToken,
) -> Response {
    let typed = Typed::of(form);
    let tried = async {
        caller.may_sign_up(app).await?;
        let new = typed.new_user(form);
        let (email, password) = (new.email.clone(), new.password.clone());
        sign_up_user(app, caller, new, sign_up_token.clone()).await?;
        begin_session(app, caller, email, password, agent).await
    };
    match tried.await {
        Ok(cookies) => with_cookies(see_other("/account?done=welcome"), cookies),
        // Somebody was faster: there is nothing to set up any more.
        Err(problem) if problem.code() == ProblemCode::NotFound => problem.into_response(),
        Err(problem) => {
            let shown = SignUpPage {
                typed,
                mistakes: Mistakes::of_problem(&problem).in_order(&FIELDS),
                ..SignUpPage::new(app, caller, sign_up_token).await
            };
            refused(problem, |status| page(status, &shown))
        }
    }
}

async fn sign_up_user(
    app: &App,
    caller: &Caller,
    new: NewUser,
    sign_up_token: SignUpToken,
) -> Result<(), Problem> {
    let users = Arc::clone(&app.accounts.users);
    let origin = caller.origin();
    run_to_completion(async move {
        match sign_up_token {
            SignUpToken::Invite { code, .. } => {
                let code = Some(code).filter(|code| !code.is_empty());
                users.sign_up(&new, code.as_deref(), origin).await
            }
            SignUpToken::Setup { token } => users.set_up(&token, &new, origin).await,
        }
    })
    .await
    .map(drop)
}
