//! `/admin/blocklist`: where links must not lead, and links that are switched off.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use curt_core::ports::ListQuery;
use curt_core::{EffectiveState, Link, LinkState};
use curt_links::Who;
use http::{StatusCode, Uri};
use url::{Url, form_urlencoded};

use super::question::AdminQuestion;
use super::{AdminBar, Refused, administrator, frame, posted};
use crate::caller::Caller;
use crate::pages::confirm::Question;
use crate::pages::form::{Form, see_other};
use crate::pages::frame::Frame;
use crate::pages::visitor::Visitor;
use crate::pages::{page, refused};
use crate::problem::Problem;
use crate::state::App;
use crate::tasks::run_to_completion;

const PATH: &str = "/admin/blocklist";
const DISABLED_SHOWN: usize = 50;

#[derive(Template)]
#[template(path = "admin_blocklist.html")]
struct BlocklistPage {
    frame: Frame,
    bar: AdminBar,
    entries: usize,
    target: String,
    answer: Option<&'static str>,
    disabled: Vec<DisabledLink>,
    next: Option<String>,
    key: String,
}

struct DisabledLink {
    key: String,
    target: String,
    owner: u64,
}

impl DisabledLink {
    fn of(link: &Link) -> Self {
        Self {
            key: link.id.key.to_string(),
            target: link.target.to_string(),
            owner: link.owner.0,
        }
    }
}

impl BlocklistPage {
    async fn load(
        app: &App,
        administrator: &Visitor,
        bar: AdminBar,
        cursor: Option<String>,
    ) -> Result<Self, Problem> {
        let query = ListQuery {
            state: Some(EffectiveState::Disabled),
            limit: DISABLED_SHOWN,
            cursor: cursor.map(Into::into),
            ..ListQuery::default()
        };
        let links = Arc::clone(&app.links);
        let reading = async move { links.list(Who::Anybody, query).await };
        let listed = app
            .scans
            .read(administrator.principal.user, reading)
            .await??;
        Ok(Self {
            frame: frame(app, administrator),
            bar,
            entries: app.policy.blocklist().entries(),
            target: String::new(),
            answer: None,
            disabled: listed.links.iter().map(DisabledLink::of).collect(),
            next: listed.next.as_deref().map(next_address),
            key: String::new(),
        })
    }
}

fn next_address(cursor: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("cursor", cursor);
    format!("{PATH}?{}", query.finish())
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
    let mut shown = BlocklistPage::load(&app, &administrator, bar, cursor).await?;
    shown.target = asked.text("target");
    if !shown.target.is_empty() {
        let url =
            Url::parse(&shown.target).or_else(|_| Url::parse(&format!("https://{}", shown.target)));
        shown.answer = Some(match url {
            Ok(url) if app.policy.blocklist().blocks(&url) => {
                "is blocked: no link can be made to it, and those that there are answer 410."
            }
            Ok(_) => "is not blocked.",
            Err(_) => "is no address: write it as https://example.com/.",
        });
    }
    Ok(page(StatusCode::OK, &shown))
}

/// Switches a link off or on, whoever owns it.
pub(super) async fn switch(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Refused> {
    let (administrator, form) = posted(&app, &caller, request).await?;
    // The whole short URL is what people report.
    let typed = form.text("key");
    let key = typed
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    let state = match form.secret("state") {
        "active" => LinkState::Active,
        _ => LinkState::Disabled,
    };
    let link = match app.links.get(Who::Anybody, &key).await {
        Ok(link) => link,
        Err(error) => {
            let problem = Problem::from(error);
            let bar = AdminBar::new(PATH, &administrator).failed(&problem);
            let mut shown = BlocklistPage::load(&app, &administrator, bar, None).await?;
            shown.key = typed;
            return Ok(refused(problem, |status| page(status, &shown)).into_response());
        }
    };
    if state == LinkState::Disabled && !Question::is_answered(&form) {
        let question = AdminQuestion {
            question: format!("Switch {key} off?"),
            consequence: format!(
                "It leads to {}. Visitors get 410 within a second, until it is switched on again.",
                link.target
            ),
            yes: "Switch off",
            action: format!("{PATH}/switch"),
            fields: vec![("key", key), ("state", "disabled".to_owned())],
            back: PATH.to_owned(),
        };
        return Ok(question.ask(&app, &administrator));
    }
    let (working, switcher) = (Arc::clone(&app), administrator.principal.clone());
    run_to_completion(async move {
        let operations = working.link_operations();
        let caller = caller.link_caller(Some(&switcher));
        operations.switch_link(caller, &key, state).await
    })
    .await?;
    Ok(see_other(match state {
        LinkState::Active => "/admin/blocklist?done=link-enabled",
        _ => "/admin/blocklist?done=link-disabled",
    }))
}
