//! What is left of a limit, in the fields that clients read: `RateLimit-Policy` and `RateLimit`
//! (draft-ietf-httpapi-ratelimit-headers), and `Retry-After` when nothing is.

use std::time::Duration;

use axum::response::Response;
use curt_accounts::Decision;
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue};

use crate::problem::{Problem, ProblemCode};

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// A refused request becomes a 429 that says when to come again; a granted one passes on what it says.
pub(crate) fn granted(decision: Option<Decision>) -> Result<Option<Decision>, Problem> {
    match decision {
        Some(decision) if !decision.granted => Err(refused(&decision)),
        decision => Ok(decision),
    }
}

pub(crate) fn refused(decision: &Decision) -> Problem {
    let detail = if decision.retry_after == Duration::MAX {
        format!(
            "This asks for more at once than the limit allows: {} in {} seconds.",
            decision.rule.amount,
            decision.rule.period.as_secs()
        )
    } else {
        format!(
            "{} in {} seconds are allowed. Come again in {} seconds.",
            decision.rule.amount,
            decision.rule.period.as_secs(),
            whole_seconds(decision.retry_after)
        )
    };
    fields(decision).into_iter().fold(
        Problem::new(ProblemCode::RateLimited).detail(detail),
        |problem, (name, value)| problem.header_value(name, value),
    )
}

/// Adds the fields to an answer that a limit let through.
pub(crate) fn note(response: &mut Response, decision: Option<&Decision>) {
    for (name, value) in decision.map(fields).unwrap_or_default() {
        response.headers_mut().insert(name, value);
    }
}

fn fields(decision: &Decision) -> Vec<(HeaderName, HeaderValue)> {
    let name = decision.name;
    let policy = format!(
        "\"{name}\";q={};w={}",
        decision.rule.amount,
        whole_seconds(decision.rule.period)
    );
    let left = format!(
        "\"{name}\";r={};t={}",
        decision.remaining,
        whole_seconds(decision.reset_after)
    );
    let mut fields = vec![(RATE_LIMIT_POLICY, policy), (RATE_LIMIT, left)];
    if !decision.granted && decision.retry_after != Duration::MAX {
        fields.push((RETRY_AFTER, whole_seconds(decision.retry_after).to_string()));
    }
    fields
        .into_iter()
        .filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?)))
        .collect()
}

/// Rounded up: whoever waits as told must not come too early.
fn whole_seconds(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_add(u64::from(duration.subsec_nanos() > 0))
}
