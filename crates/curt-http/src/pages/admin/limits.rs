//! `/admin/limits`: what everybody may do, and who may do more or less.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use curt_core::ports::QuotaRule;
use curt_core::{OwnerId, User};
use http::{StatusCode, Uri};

use super::users::name_of;
use super::{AdminBar, Refused, administrator, frame};
use crate::api::server_limits;
use crate::caller::Caller;
use crate::pages::form::Form;
use crate::pages::frame::Frame;
use crate::pages::page;
use crate::problem::Problem;
use crate::state::App;

const PATH: &str = "/admin/limits";
/// Users that are looked at for a page, of whom those with limits of their own are shown.
const LOOKED_AT: usize = 200;
const AMOUNT_MAX: u64 = 1_000_000_000;
const PERIOD_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

#[derive(Template)]
#[template(path = "admin_limits.html")]
struct LimitsPage {
    frame: Frame,
    bar: AdminBar,
    limits: Vec<LimitRow>,
    users: Vec<LimitedUser>,
    is_first: bool,
    next: Option<u64>,
}

struct LimitRow {
    setting: &'static str,
    about: &'static str,
    rate: Option<String>,
}

struct LimitedUser {
    id: u64,
    name: String,
    creations: Option<String>,
    redirections: Option<String>,
}

impl LimitedUser {
    fn of(user: &User) -> Option<Self> {
        let allowance = &user.allowance;
        let has_own = allowance.creations.is_some() || allowance.redirections.is_some();
        has_own.then(|| Self {
            id: user.id.0,
            name: name_of(user),
            creations: allowance.creations.map(rate_text),
            redirections: allowance.redirections.map(rate_text),
        })
    }
}

fn about(setting: &str) -> &'static str {
    match setting {
        "creations_per_key" => "Links made with one API key",
        "creations_per_user" => "Links made by one user",
        "creations_per_address" => "Links made from one address without an account",
        "redirections_per_key" => "Clicks of the links made with one API key",
        "redirections_per_user" => "Clicks of one user’s links",
        "misses_per_address" => "Requests of one address for links that are not there",
        "sign_ins_per_address" => "Failed sign-ins from one address",
        "sign_ins_per_account" => "Failed sign-ins to one account",
        "sign_ups_per_address" => "New accounts from one address",
        "password_checks_per_user" => "Wrong passwords of somebody who is signed in",
        "link_passwords_per_address" => "Wrong passwords of one link from one address",
        "link_passwords_per_link" => "Wrong passwords of one link from all addresses",
        "password_links_per_user" => "Passwords set for links by one user",
        "password_links_per_address" => {
            "Passwords set for links from one address without an account"
        }
        _ => "",
    }
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Refused> {
    let administrator = administrator(&app, &caller, &uri).await?;
    let asked = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let after: Option<u64> = asked.text("cursor").parse().ok();
    let users = Arc::clone(&app.accounts.users);
    let reading = async move { users.list(after.map(OwnerId), LOOKED_AT).await };
    let users = app
        .scans
        .read(administrator.principal.user, reading)
        .await??;
    let next = users.last().filter(|_| users.len() == LOOKED_AT);
    let limits = server_limits(app.accounts.limits.settings());
    let shown = LimitsPage {
        frame: frame(&app, &administrator),
        bar: AdminBar::new(PATH, &administrator),
        limits: limits
            .into_iter()
            .map(|(setting, rule)| LimitRow {
                setting,
                about: about(setting),
                rate: rule.map(rate_text),
            })
            .collect(),
        next: next.map(|user| user.id.0),
        users: users.iter().filter_map(LimitedUser::of).collect(),
        is_first: after.is_none(),
    };
    Ok(page(StatusCode::OK, &shown))
}

/// A limit as settings write it: `100/1h`.
pub(super) fn rate_text(rule: QuotaRule) -> String {
    let seconds = rule.period.as_secs();
    let period = match seconds {
        0 => format!("{}ms", rule.period.as_millis()),
        days if days % 86_400 == 0 => format!("{}d", days / 86_400),
        hours if hours % 3_600 == 0 => format!("{}h", hours / 3_600),
        minutes if minutes % 60 == 0 => format!("{}m", minutes / 60),
        seconds => format!("{seconds}s"),
    };
    format!("{}/{period}", rule.amount)
}

/// Reads a limit; empty: none of their own.
pub(super) fn parse_rate(field: &'static str, text: &str) -> Result<Option<QuotaRule>, Problem> {
    if text.is_empty() {
        return Ok(None);
    }
    let read = || {
        let (amount, period) = text.split_once('/')?;
        let amount: u64 = amount.trim().parse().ok()?;
        let period = period.trim();
        let unit = period.find(|symbol: char| !symbol.is_ascii_digit())?;
        let (number, unit) = period.split_at(unit);
        let number: u64 = if number.is_empty() {
            1
        } else {
            number.parse().ok()?
        };
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        let period = Duration::from_secs(number.checked_mul(seconds)?);
        let is_within = amount <= AMOUNT_MAX && !period.is_zero() && period <= PERIOD_MAX;
        is_within.then_some(QuotaRule { amount, period })
    };
    read().map(Some).ok_or_else(|| {
        let why =
            "Write how many in how long, such as 100/1h or 10000/1d: a billion and a year at most.";
        Problem::invalid_field(field, "value", why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_are_written() {
        for text in [
            "0/1s",
            "100/1h",
            "30/90s",
            "5/10m",
            "1000000000/366d",
            "7/36h",
        ] {
            let rule = parse_rate("creations", text).unwrap().unwrap();
            assert_eq!(rate_text(rule), text);
        }
        assert_eq!(parse_rate("creations", "").unwrap(), None);
        assert_eq!(
            parse_rate("creations", "9/h").unwrap(),
            parse_rate("creations", "9/1h").unwrap()
        );
        for text in [
            "100",
            "100/",
            "/1h",
            "x/1h",
            "-1/1h",
            "1/0s",
            "1/367d",
            "1/1w",
            "1000000001/1h",
            "1/99999999999999999999d",
        ] {
            assert!(parse_rate("creations", text).is_err(), "{text}");
        }
    }
}
