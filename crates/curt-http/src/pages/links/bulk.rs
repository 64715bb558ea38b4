//! What is done with the links that were ticked.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use curt_core::{LinkState, Scope};
use curt_links::{LinkError, LinksChange, TagChange, Who};
use http::StatusCode;
use url::form_urlencoded;

use super::filter::ListFilter;
use super::{PATH, listed_page};
use crate::api::{bulk_change, links_file};
use crate::caller::{Caller, check_scope};
use crate::pages::expiry_choice::parse_choice;
use crate::pages::form::{Form, see_other};
use crate::pages::frame::Frame;
use crate::pages::page;
use crate::pages::turned::{Turned, posted};
use crate::pages::visitor::Visitor;
use crate::problem::Problem;
use crate::state::App;

/// Links whose refusal is told one by one.
const TOLD_MAX: usize = 10;

#[derive(Template)]
#[template(path = "links_confirm.html")]
struct ConfirmDeletion<'a> {
    frame: Frame,
    csrf: &'a str,
    keys: &'a [String],
    back: String,
    back_query: String,
}

/// What the last form came to.
#[derive(Default)]
pub(super) struct BulkOutcome {
    pub(super) said: Option<String>,
    pub(super) failures: Vec<BulkFailure>,
    /// How many more were refused.
    pub(super) more_failures: usize,
}

pub(super) struct BulkFailure {
    pub(super) key: String,
    pub(super) why: String,
}

impl BulkOutcome {
    /// What the address of the page says was done; a number and one of our own words.
    pub(super) fn done(query: &Form) -> Self {
        let count = query.text("n").parse::<u64>().ok();
        let said = count.and_then(|count| Some((words(&query.text("done"))?, count)));
        Self {
            said: said.map(|(done, count)| sentence(done, count)),
            ..Self::default()
        }
    }

    fn refused(mistake: &str) -> Self {
        Self {
            failures: vec![BulkFailure {
                key: String::new(),
                why: mistake.to_owned(),
            }],
            ..Self::default()
        }
    }

    fn of(action: &str, keys: &[String], outcomes: Vec<Result<(), LinkError>>) -> Self {
        let mut failures: Vec<_> = keys
            .iter()
            .zip(outcomes)
            .filter_map(|(key, outcome)| {
                let problem = Problem::from(outcome.err()?).body();
                let errors = problem.errors.iter().map(|error| error.message.to_string());
                let errors: Vec<String> = errors.collect();
                Some(BulkFailure {
                    key: key.clone(),
                    why: match errors.is_empty() {
                        true => problem.detail.into_owned(),
                        false => errors.join(" "),
                    },
                })
            })
            .collect();
        let done = (keys.len() - failures.len()) as u64;
        let more_failures = failures.len().saturating_sub(TOLD_MAX);
        failures.truncate(TOLD_MAX);
        Self {
            said: words(action).map(|word| sentence(word, done)),
            failures,
            more_failures,
        }
    }
}

/// What an action does to links, in the past.
fn words(action: &str) -> Option<&'static str> {
    Some(match action {
        "tag" => "tagged",
        "untag" => "untagged",
        "expire" => "given a new end",
        "delete" => {
            "deleted. “Deleted” in the list of states has them, until they are removed for good"
        }
        "restore" => "restored",
        "disable" => "switched off",
        "enable" => "switched on",
        _ => return None,
    })
}

fn sentence(done: &str, count: u64) -> String {
    let were = if count == 1 { "link was" } else { "links were" };
    format!("{count} {were} {done}.")
}

pub(super) async fn bulk(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let (visitor, form) = posted(&app, &caller, request, PATH).await?;
    let filter = ListFilter::of(&Form::parse(form.secret("back").as_bytes()));
    let mut keys: Vec<String> = form.all("key").map(str::to_owned).collect();
    keys.dedup();
    if keys.is_empty() {
        let outcome = BulkOutcome::refused("Tick the links that you mean, and choose again.");
        return Ok(listed_page(&app, &visitor, filter, outcome).await?);
    }
    let action = form.text("action");
    if action == "export" {
        return Ok(export(&app, &visitor, &keys).await?);
    }
    if action == "delete" && form.text("confirmed") != "yes" {
        return Ok(ask(&app, &visitor, &keys, &filter));
    }
    let change = match change_of(&app, &action, &form) {
        Ok(change) => change,
        Err(mistake) => {
            let outcome = BulkOutcome::refused(mistake);
            return Ok(listed_page(&app, &visitor, filter, outcome).await?);
        }
    };
    check_scope(&visitor.principal, Scope::Manage)?;
    let outcomes =
        bulk_change::change_links(&app, &caller, &visitor.principal, keys.clone(), change).await?;
    if outcomes.iter().all(Result::is_ok) {
        let mut query = form_urlencoded::Serializer::new(filter.query());
        query.append_pair("done", &action);
        query.append_pair("n", &keys.len().to_string());
        return Ok(see_other(&format!("{PATH}?{}", query.finish())));
    }
    let outcome = BulkOutcome::of(&action, &keys, outcomes);
    Ok(listed_page(&app, &visitor, filter, outcome).await?)
}

fn change_of(app: &App, action: &str, form: &Form) -> Result<LinksChange, &'static str> {
    let tags = || {
        let tags = form.secret("tags").split(',').map(str::trim);
        let tags: Vec<String> = tags
            .filter(|tag| !tag.is_empty())
            .map(str::to_owned)
            .collect();
        match tags.is_empty() {
            true => Err("Type a tag, or several separated by commas."),
            false => Ok(tags),
        }
    };
    Ok(match action {
        "tag" => LinksChange::Tag(TagChange {
            add: tags()?,
            remove: Vec::new(),
        }),
        "untag" => LinksChange::Tag(TagChange {
            add: Vec::new(),
            remove: tags()?,
        }),
        "expire" => {
            let expiry = parse_choice(&form.text("expires"), app.clock.now());
            LinksChange::Expire(expiry.ok_or("Choose from the list when the links are to end.")?)
        }
        "delete" => LinksChange::Delete,
        "restore" => LinksChange::Restore,
        "disable" => LinksChange::Switch(LinkState::Disabled),
        "enable" => LinksChange::Switch(LinkState::Active),
        _ => return Err("Choose what is to become of the links."),
    })
}

fn ask(app: &App, visitor: &Visitor, keys: &[String], filter: &ListFilter) -> Response {
    let shown = ConfirmDeletion {
        frame: Frame::new(app, Some(visitor)).at(PATH),
        csrf: &visitor.csrf,
        keys,
        back: filter.address(),
        back_query: filter.query(),
    };
    page(StatusCode::OK, &shown)
}

/// The file of the links that were ticked and are the visitor's.
async fn export(app: &App, visitor: &Visitor, keys: &[String]) -> Result<Response, Problem> {
    check_scope(&visitor.principal, Scope::Read)?;
    let who = Who::reachable_by(&visitor.principal);
    let links = app.links.get_many(who, keys).await?;
    links_file::of_links(app, visitor.principal.user, &links).await
}
