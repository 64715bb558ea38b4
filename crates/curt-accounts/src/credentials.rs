//! Whom a shown token stands for, remembered for a second.

use curt_core::{PortResult, UnixMillis};

use crate::even_time::EvenTime;
use crate::principal::Principal;
use crate::token::{self, Form};
use crate::verdicts::Verdicts;

/// Verdicts on tokens of every form, by the hash of the token: what the memory holds must not be usable as one.
pub(crate) type Credentials = Verdicts<[u8; 32], Verdict>;

#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) principal: Option<Principal>,
    pub(crate) ends_at: Option<UnixMillis>,
}

impl Verdict {
    pub(crate) const STRANGER: Self = Self {
        principal: None,
        ends_at: None,
    };

    pub(crate) fn principal_at(self, now: UnixMillis) -> Option<Principal> {
        if self.ends_at.is_some_and(|at| at <= now) {
            return None;
        }
        self.principal
    }
}

/// Whom a token stands for: by what was decided about it within the last second, or by what `look` finds out now from
/// its public part and its secret. A refusal takes [even time](EvenTime), whatever the reason.
pub(crate) async fn recognise<'t, Look>(
    credentials: &Credentials,
    form: Form,
    token: &'t str,
    now: UnixMillis,
    look: impl FnOnce(&'t str, &'t str) -> Look,
) -> PortResult<Option<Principal>>
where
    Look: Future<Output = PortResult<Verdict>>,
{
    let begun = EvenTime::begin();
    let principal = match form.split(token) {
        Some((id, secret)) => decide(credentials, token, now, look(id, secret)).await?,
        None => None,
    };
    if principal.is_none() {
        begun.even().await;
    }
    Ok(principal)
}

async fn decide(
    credentials: &Credentials,
    token: &str,
    now: UnixMillis,
    look: impl Future<Output = PortResult<Verdict>>,
) -> PortResult<Option<Principal>> {
    let name = name_of(token);
    if let Some(verdict) = credentials.get(&name, now) {
        return Ok(verdict.principal_at(now));
    }
    let begun = credentials.begin();
    let verdict = look.await?;
    credentials.put(name, verdict.clone(), now, begun);
    Ok(verdict.principal_at(now))
}

pub(crate) fn name_of(token: &str) -> [u8; 32] {
    token::hash(token)
}
