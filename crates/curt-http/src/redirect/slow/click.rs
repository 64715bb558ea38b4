//! One click of a link, decided by who comes.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use curt_accounts::{CallerId, ConstantTime};
use curt_clicks::record::{Outcome, UtmText};
use curt_core::limits::PASSWORD_BYTES_MAX;
use curt_core::ports::SpendReply;
use curt_core::{
    Attribution, DomainId, GoneCause, Link, LinkRef, PackedTags, PortResult, RedirectStatus, Scope,
    Visibility,
};
use curt_links::Resolution;
use http::header::LOCATION;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use url::form_urlencoded;

use super::posted::Posted;
use super::refusal::{Refusal, only_followed, outcome_of, password_only};
use crate::caller::{self, Caller};
use crate::metrics::RedirectOutcome;
use crate::pages::{self, UnlockReason, negotiate::prefers_html};
use crate::problem::{Problem, ProblemCode};
use crate::rate_limit;
use crate::redirect::clicks::{Client, RequestedLink, find_utm};
use crate::redirect::{RedirectFields, Resolved};
use crate::settings::PrivateDenied;
use crate::state::App;

/// How often a link that changes under a click is looked at.
const TRIES_MAX: usize = 4;

pub(super) struct ClickRecord<'a> {
    pub(super) app: &'a App,
    fields: &'a RedirectFields,
    pub(super) caller: &'a Caller,
    client: Client,
    is_browser: bool,
    /// Whether the request can be redirected only if it keeps its method.
    keeps_method: bool,
    query: Option<&'a str>,
    begun: ConstantTime,
}

impl<'a> ClickRecord<'a> {
    pub(super) fn new(
        app: &'a App,
        fields: &'a RedirectFields,
        caller: &'a Caller,
        request: &'a Parts,
    ) -> Self {
        Self {
            app,
            fields,
            caller,
            client: Client::of(&request.method, &request.headers, caller.address),
            is_browser: prefers_html(&request.headers),
            keeps_method: !matches!(request.method, Method::GET | Method::HEAD),
            query: request.uri.query(),
            begun: ConstantTime::begin(),
        }
    }

    /// The answer to whatever follows the link: `GET` and `HEAD`, and every method that the link's status keeps.
    pub(super) async fn follow(mut self, key: Option<&str>, known: Option<Resolved>) -> Response {
        if let Some(limited) = self.throttle_decision() {
            return self.refuse(limited);
        }
        let resolution = match known {
            Some(Resolved { resolution, begun }) => {
                self.begun = begun;
                resolution
            }
            None => self.resolve(key).await,
        };
        let mut sent = self.followed(key, resolution).await;
        for _ in 1..TRIES_MAX {
            if !matches!(sent, Err(Refusal::Outdated)) {
                break;
            }
            sent = self.followed(key, self.resolve(key).await).await;
        }
        if let Err(Refusal::Problem(problem)) = &sent
            && problem.code().is_dead_link()
        {
            self.write_down(RequestedLink {
                key: key.unwrap_or_default(),
                generation: 0,
                outcome: Outcome::Absent,
                attribution: Attribution::default(),
                utm: UtmText::default(),
            });
        }
        self.answered(sent)
    }

    async fn followed(
        &self,
        key: Option<&str>,
        resolution: PortResult<Resolution>,
    ) -> Result<Response, Refusal> {
        match resolution {
            Ok(Resolution::Live(hit)) if !self.may_redirect(hit.status()) => {
                Err(only_followed().into())
            }
            Ok(Resolution::Live(hit)) => {
                let (generation, attribution) = hit.attribution();
                self.write_down(RequestedLink {
                    key: key.unwrap_or_default(),
                    generation,
                    outcome: Outcome::Redirected,
                    attribution,
                    utm: find_utm(
                        hit.location_bytes(),
                        self.query.filter(|_| hit.forward_query()),
                    ),
                });
                let now = self.app.clock.now();
                Ok(self.fields.respond(&hit, self.query, now))
            }
            Ok(Resolution::Guarded(link)) => self.guarded(&link).await,
            other => Err(self.nowhere(other).await.into()),
        }
    }

    /// The answer to an address that has tried too many keys: the same for those that lead somewhere.
    pub(super) fn throttle_decision(&self) -> Option<Problem> {
        let limits = &self.app.accounts.limits;
        let decision = limits.throttle_decision(self.caller.address, self.app.clock.now())?;
        self.app.metrics.misses_unrecorded.inc();
        Some(rate_limit::refused(&decision))
    }

    fn write_down(&self, asked: RequestedLink<'_>) {
        if let Some(clicks) = &self.app.clicks {
            clicks.record(asked, &self.client, self.app.clock.now());
        }
    }

    /// Whether a redirect with this status does what was asked for: others make a `GET` of every method.
    fn may_redirect(&self, status: RedirectStatus) -> bool {
        !self.keeps_method || status.keeps_method()
    }

    /// What `POST` is about. Unless the link has a password, which is sent in it, the link is followed.
    pub(super) async fn posted(&self, key: Option<&str>) -> Posted {
        if let Some(limited) = self.throttle_decision() {
            return Posted::Refused(limited);
        }
        match self.resolve(key).await {
            Ok(Resolution::Guarded(link)) if link.visibility == Visibility::Password => {
                Posted::Password(link)
            }
            resolution => Posted::Forwarded(Resolved {
                resolution,
                begun: self.begun,
            }),
        }
    }

    /// The answer to `POST` of a password.
    pub(super) async fn unlock(&self, link: &Arc<Link>, password: &str) -> Response {
        let mut sent = self.unlocked(link, password).await;
        for _ in 1..TRIES_MAX {
            if !matches!(sent, Err(Refusal::Outdated)) {
                break;
            }
            let key = Some(link.id.key.as_str());
            sent = match self.posted(key).await {
                Posted::Password(link) => self.unlocked(&link, password).await,
                Posted::Refused(problem) => Err(problem.into()),
                // The body was the password, and is not for the target.
                Posted::Forwarded(_) => Err(only_followed().into()),
            };
        }
        self.answered(sent)
    }

    pub(super) fn refuse(&self, problem: Problem) -> Response {
        self.answered(Err(problem.into()))
    }

    pub(super) async fn resolve(&self, key: Option<&str>) -> PortResult<Resolution> {
        let Some(key) = key else {
            return Ok(Resolution::Absent);
        };
        let link = LinkRef {
            domain: DomainId::DEFAULT,
            key,
        };
        self.app.resolver.resolve(link).await
    }

    async fn guarded(&self, link: &Arc<Link>) -> Result<Response, Refusal> {
        let may_redirect = self.may_redirect(link.status);
        match link.visibility {
            Visibility::Public => {}
            Visibility::Private if may_redirect || self.hides_private() => {
                self.may_follow(link).await?;
            }
            Visibility::Private => {}
            Visibility::Password if !may_redirect => return Err(password_only().into()),
            Visibility::Password => {
                return Err(Refusal::PasswordNeeded {
                    link: Arc::clone(link),
                    reason: UnlockReason::First,
                });
            }
        }
        if !may_redirect {
            return Err(only_followed().into());
        }
        self.let_through(link).await?;
        Ok(self.fields.respond_guarded(link, self.query))
    }

    /// The owner may, and whoever was given permission. Where private links are hidden, all others hear what they would
    /// hear of a key that nobody has, whatever credentials they show.
    async fn may_follow(&self, link: &Arc<Link>) -> Result<(), Refusal> {
        match self.permitted(link).await {
            Err(refusal) if self.hides_private() && !refusal.is_failure() => {
                Err(self.absent().await.into())
            }
            decided => decided,
        }
    }

    async fn permitted(&self, link: &Arc<Link>) -> Result<(), Refusal> {
        let principal = self.caller.principal(self.app, None).await?;
        let Some(principal) = principal else {
            return Err(Refusal::SignInNeeded(Arc::clone(link)));
        };
        caller::check_scope(&principal, Scope::Read)?;
        if principal.user == link.owner {
            return Ok(());
        }
        let permissions = &self.app.accounts.permissions;
        let permitted = permissions
            .may_follow(principal.user, &link.id, link.revision.generation)
            .await
            .map_err(Problem::from)?;
        match permitted {
            true => Ok(()),
            false => Err(Problem::new(ProblemCode::LinkForbidden).into()),
        }
    }

    /// Guesses are counted before anything is hashed, so that they cost the guesser a limit and us nothing; right ones
    /// are given back.
    async fn unlocked(&self, link: &Arc<Link>, password: &str) -> Result<Response, Refusal> {
        let limits = &self.app.accounts.limits;
        let guess = limits.link_passwords(self.caller.address, &link.id).await;
        let guess = guess.map_err(Problem::from)?;
        rate_limit::granted(guess.decision).map_err(|limited| Refusal::PasswordNeeded {
            link: Arc::clone(link),
            reason: UnlockReason::Limited(limited),
        })?;
        let passwords = &self.app.accounts.link_passwords;
        let visitor = CallerId::address(self.caller.address);
        let is_true = password.len() <= PASSWORD_BYTES_MAX
            && passwords
                .verify(visitor, password, link.password_hash.as_deref())
                .await
                .map_err(Problem::from)?;
        if !is_true {
            return Err(Refusal::PasswordNeeded {
                link: Arc::clone(link),
                reason: UnlockReason::WrongPassword,
            });
        }
        limits.give_back(guess, true).await;
        self.let_through(link).await?;
        let mut response = self.fields.respond_guarded(link, self.query);
        // Whatever the link's own status: with 307 the browser would send the password on to the target.
        *response.status_mut() = StatusCode::SEE_OTHER;
        Ok(response)
    }

    /// Takes the click from what the link's owner and the key that made it may have, and from what is left of the
    /// link's own, and writes it down.
    async fn let_through(&self, link: &Link) -> Result<(), Refusal> {
        let limits = &self.app.accounts.limits;
        let decision = limits.redirections(link.owner, link.made_with).await;
        rate_limit::granted(decision)?;
        let mut tags = Vec::new();
        PackedTags::pack(link.tags.iter().map(|tag| &**tag), &mut tags);
        let asked = RequestedLink {
            key: link.id.key.as_str(),
            generation: link.revision.generation,
            outcome: Outcome::Redirected,
            attribution: Attribution {
                owner: link.owner,
                tags: PackedTags::from_packed(&tags),
            },
            utm: find_utm(
                link.target.as_str().as_bytes(),
                self.query.filter(|_| link.forward_query),
            ),
        };
        let counts = link.max_clicks.is_some() && {
            let (rules, now) = (self.app.click_rules(), self.app.clock.now());
            self.client.is_human(&rules, asked, now)
        };
        let spent = self.app.resolver.spend(link, counts).await;
        match spent.map_err(Problem::from)? {
            // What takes no click does not see the target either, or the limit would be none.
            SpendReply::Granted if link.max_clicks.is_some() && !counts => {
                return Err(Problem::new(ProblemCode::BrowserNeeded).into());
            }
            SpendReply::Granted => self.write_down(asked),
            SpendReply::Exhausted => return Err(Problem::new(ProblemCode::LinkExhausted).into()),
            SpendReply::Stale => return Err(Refusal::Outdated),
        }
        Ok(())
    }

    pub(super) async fn nowhere(&self, resolution: PortResult<Resolution>) -> Problem {
        match resolution {
            Ok(Resolution::Scheduled) => Problem::new(ProblemCode::LinkScheduled),
            Ok(Resolution::Gone(cause)) => Problem::new(match cause {
                GoneCause::Expired => ProblemCode::LinkExpired,
                GoneCause::Disabled => ProblemCode::LinkDisabled,
                GoneCause::Deleted => ProblemCode::LinkGone,
            }),
            Ok(Resolution::Blocked) => Problem::new(ProblemCode::LinkBlocked),
            Ok(_) => self.absent().await,
            Err(failure) => failure.into(),
        }
    }

    /// Whoever tries keys hears of a few that lead nowhere, and then of none.
    pub(super) async fn absent(&self) -> Problem {
        let decision = self.app.accounts.limits.misses(self.caller.address).await;
        if self.hides_private() {
            self.begun.wait_for_step_end().await;
        }
        match rate_limit::granted(decision) {
            Ok(_) => Problem::new(ProblemCode::LinkNotFound)
                .detail("Check the address, upper and lower case included."),
            // A scanner would fill the spool with its guesses: they are counted, but not written down.
            Err(limited) => {
                self.app.metrics.misses_unrecorded.inc();
                limited
            }
        }
    }

    /// Whether visitors may be told that there is no link when there is one.
    fn hides_private(&self) -> bool {
        self.app.settings.redirect.private_denied == PrivateDenied::Hidden
    }

    /// Words the answer for whoever reads it, and counts it.
    fn answered(&self, sent: Result<Response, Refusal>) -> Response {
        let (outcome, response) = match sent {
            Ok(response) => (RedirectOutcome::Loaded, response),
            Err(Refusal::SignInNeeded(link)) if self.is_browser => {
                (RedirectOutcome::Refused, self.to_sign_in(&link))
            }
            Err(Refusal::PasswordNeeded { link, reason }) if self.is_browser => {
                let outcome = match reason {
                    UnlockReason::Limited(_) => RedirectOutcome::Limited,
                    UnlockReason::First | UnlockReason::WrongPassword => RedirectOutcome::Refused,
                };
                let address = self.address_of(&link);
                let page = pages::unlock_page(self.app, self.caller, address, reason);
                (outcome, page)
            }
            Err(refusal) => {
                let problem = refusal.into_problem();
                (outcome_of(problem.code()), problem.into_response())
            }
        };
        self.app.metrics.redirected(outcome, 1);
        response
    }

    /// The link's path, with the query that it is followed with.
    fn address_of(&self, link: &Link) -> String {
        match self.query {
            Some(query) => format!("/{}?{query}", link.id.key),
            None => format!("/{}", link.id.key),
        }
    }

    fn to_sign_in(&self, link: &Link) -> Response {
        let next = form_urlencoded::Serializer::new(String::new())
            .append_pair("next", &self.address_of(link))
            .finish();
        match HeaderValue::try_from(format!("/sign-in?{next}")) {
            Ok(page) => (StatusCode::SEE_OTHER, [(LOCATION, page)]).into_response(),
            Err(_) => Problem::new(ProblemCode::Internal).into_response(),
        }
    }
}
