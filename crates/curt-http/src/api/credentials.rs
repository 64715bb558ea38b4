//! Who is asking.
//!
//! An API key comes as `Authorization: Bearer KEY` or `X-Api-Key: KEY`, and in the two operations of the original
//! API also as `api_dev_key`; a header wins over a parameter. Without a key, links can be made only where the setting
//! allows it, and then not by a page of another site: a browser would send such a request without being asked.

use curt_accounts::Principal;
use curt_core::OwnerId;
use curt_links::{Maker, Who};
use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST, ORIGIN};

use crate::problem::{Problem, ProblemCode};
use crate::state::App;

const X_API_KEY: &str = "x-api-key";
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Whose links the request may touch. Without a key: 401.
pub(crate) async fn owner(
    app: &App,
    headers: &HeaderMap,
    parameter: Option<&str>,
) -> Result<Who, Problem> {
    match token(headers, parameter)? {
        Some(token) => Ok(Who::Owner(verify(app, token).await?.user)),
        None => Err(Problem::new(ProblemCode::CredentialsMissing)),
    }
}

/// Who makes links: the owner, or nobody where that may be done without a key.
pub(crate) async fn creator(
    app: &App,
    headers: &HeaderMap,
    parameter: Option<&str>,
) -> Result<Maker, Problem> {
    match token(headers, parameter)? {
        Some(token) => {
            let principal = verify(app, token).await?;
            Ok(Maker {
                owner: principal.user,
                made_with: principal.made_with(),
            })
        }
        None if app.settings.api.anonymous_create => {
            refuse_other_sites(headers)?;
            Ok(Maker {
                owner: OwnerId::ANONYMOUS,
                made_with: None,
            })
        }
        None => Err(Problem::new(ProblemCode::CredentialsMissing)),
    }
}

async fn verify(app: &App, token: &str) -> Result<Principal, Problem> {
    let principal = app.api_keys.authenticate(token).await?;
    principal.ok_or_else(|| Problem::new(ProblemCode::CredentialsInvalid))
}

fn token<'a>(
    headers: &'a HeaderMap,
    parameter: Option<&'a str>,
) -> Result<Option<&'a str>, Problem> {
    let invalid = || Problem::new(ProblemCode::CredentialsInvalid);
    if let Some(value) = headers.get(AUTHORIZATION) {
        let (scheme, token) = value
            .to_str()
            .ok()
            .and_then(|value| value.trim().split_once(' '))
            .ok_or_else(invalid)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(invalid().detail("The scheme of the Authorization header must be Bearer."));
        }
        return Ok(Some(token.trim()));
    }
    if let Some(value) = headers.get(X_API_KEY) {
        return Ok(Some(value.to_str().map_err(|_| invalid())?.trim()));
    }
    Ok(parameter.filter(|token| !token.is_empty()))
}

/// Browsers say where a request comes from; programs do not, and are let through.
fn refuse_other_sites(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let foreign = match (text(SEC_FETCH_SITE), text(ORIGIN.as_str())) {
        (Some(site), _) => site != "same-origin" && site != "none",
        (None, Some(origin)) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            host.is_none() || host != text(HOST.as_str())
        }
        (None, None) => false,
    };
    if foreign {
        return Err(Problem::new(ProblemCode::CrossSite));
    }
    Ok(())
}
