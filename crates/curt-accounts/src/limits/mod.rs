//! How much may be done per period, counted in buckets that an engine keeps.

mod address;
mod guesses;
mod redirections;
mod settings;
mod shared;
mod throttled;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use curt_core::names::event;
use curt_core::ports::{Accounts, Bucket, QuotaReply, QuotaRule, Quotas};
use curt_core::{ApiKeyNumber, Clock, OwnerId, PortResult};

pub use self::address::rate_limit_prefix;
use self::address::site;
pub use self::guesses::Guess;
use self::guesses::KnownAddresses;
pub use self::redirections::RedirectionRules;
pub use self::settings::LimitSettings;
pub use self::shared::SharedQuotas;
use self::throttled::ThrottledAddresses;
use crate::principal::{Credential, Principal};

/// What is limited, as answers name it.
pub mod policy {
    pub const CREATE: &str = "create";
    pub const REDIRECT: &str = "redirect";
    pub const MISS: &str = "miss";
    pub const SIGN_IN: &str = "sign-in";
    pub const SIGN_UP: &str = "sign-up";
    pub const PASSWORD: &str = "password";
    pub const LINK_PASSWORD: &str = "link-password";
    pub const PASSWORD_LINK: &str = "password-link";
}

/// What the tightest of the buckets that count says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub granted: bool,
    /// One of [`policy`].
    pub name: &'static str,
    pub rule: QuotaRule,
    /// What could be taken now.
    pub remaining: u64,
    /// Waiting this long is enough; zero when granted, [`Duration::MAX`] when no wait would be.
    pub retry_after: Duration,
    /// Until the bucket is full again.
    pub reset_after: Duration,
}

pub struct Limits {
    settings: LimitSettings,
    quotas: Arc<dyn Quotas>,
    accounts: Arc<dyn Accounts>,
    clock: Arc<dyn Clock>,
    redirections: Mutex<Arc<RedirectionRules>>,
    known: KnownAddresses,
    throttled: ThrottledAddresses,
    /// So that an outage is logged once and not once per click.
    failing: AtomicBool,
    refusals: Mutex<BTreeMap<&'static str, u64>>,
}

impl Limits {
    /// The limits of those who have none of their own.
    #[must_use]
    pub fn settings(&self) -> &LimitSettings {
        &self.settings
    }

    pub(crate) fn new(
        settings: LimitSettings,
        quotas: Arc<dyn Quotas>,
        accounts: Arc<dyn Accounts>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let rules = RedirectionRules::new(&settings, Default::default());
        Arc::new(Self {
            settings,
            quotas,
            accounts,
            clock,
            redirections: Mutex::new(Arc::new(rules)),
            known: KnownAddresses::default(),
            throttled: ThrottledAddresses::default(),
            failing: AtomicBool::new(false),
            refusals: Mutex::default(),
        })
    }

    /// Takes `count` new links from what their maker may make. A failing engine is an error: nothing may be made then.
    pub async fn creations(
        &self,
        by: Option<&Principal>,
        address: IpAddr,
        count: u64,
    ) -> PortResult<Option<Decision>> {
        let buckets = self.creation_buckets(by, address);
        self.take(policy::CREATE, &buckets, count).await
    }

    /// Returns the refusal of a maker who cannot make a single link now, and takes nothing from one who can.
    pub async fn creations_exhausted(
        &self,
        by: Option<&Principal>,
        address: IpAddr,
    ) -> PortResult<Option<Decision>> {
        let buckets = self.creation_buckets(by, address);
        let left = self.take(policy::CREATE, &buckets, 0).await?;
        if left.is_none_or(|left| left.remaining > 0) {
            return Ok(None);
        }
        // What is refused takes nothing, and tells when to come again.
        let decision = self.take(policy::CREATE, &buckets, 1).await?;
        if decision.is_some_and(|decision| !decision.granted) {
            return Ok(decision);
        }
        // The bucket got one back in between.
        let asked = buckets.as_ports();
        self.quotas.give_back(&asked, 1).await?;
        Ok(None)
    }

    fn creation_buckets(&self, by: Option<&Principal>, address: IpAddr) -> Buckets {
        let mut buckets = Buckets::default();
        match by {
            Some(principal) => {
                if let Credential::ApiKey {
                    bucket, allowance, ..
                } = &principal.via
                {
                    let rule = allowance.creations.or(self.settings.creations_per_key);
                    buckets.add(rule, || format!("create/key/{}", bucket.0));
                }
                let own = principal.allowance.creations;
                let rule = own.or(self.settings.creations_per_user);
                buckets.add(rule, || format!("create/user/{}", principal.user));
            }
            None => {
                let rule = self.settings.creations_per_address;
                self.add_address(&mut buckets, rule, "create", address);
            }
        }
        buckets
    }

    /// Takes `count` new passwords of links from what their maker may set, before any is hashed. A failing engine is an
    /// error.
    pub async fn password_links(
        &self,
        by: Option<&Principal>,
        address: IpAddr,
        count: u64,
    ) -> PortResult<Option<Decision>> {
        let mut buckets = Buckets::default();
        match by {
            Some(principal) => buckets.add(self.settings.password_links_per_user, || {
                format!("password-link/user/{}", principal.user)
            }),
            None => {
                let rule = self.settings.password_links_per_address;
                self.add_address(&mut buckets, rule, "password-link", address);
            }
        }
        self.take(policy::PASSWORD_LINK, &buckets, count).await
    }

    /// Takes one click of a link from what its owner and the key that made it may have. With a failing engine there is
    /// no limit: a link that works is worth more than a count.
    pub async fn redirections(
        &self,
        owner: OwnerId,
        made_with: Option<ApiKeyNumber>,
    ) -> Option<Decision> {
        let rules = self.redirection_rules();
        let mut buckets = Buckets::default();
        if let Some(key) = made_with {
            buckets.add(rules.of_key(key), || format!("redirect/key/{}", key.0));
        }
        buckets.add(rules.of_user(owner), || format!("redirect/user/{owner}"));
        if buckets.0.is_empty() {
            return None;
        }
        let asked = buckets.as_ports();
        let replies = self.quotas.take_ahead(&asked, 1).await;
        self.or_pass(policy::REDIRECT, &asked, replies)
    }

    /// Counts a look-up of a key that leads nowhere, and [holds](Self::throttled) an address that has had too many. With a
    /// failing engine there is no limit.
    pub async fn misses(&self, address: IpAddr) -> Option<Decision> {
        let mut buckets = Buckets::default();
        let rule = self.settings.misses_per_address;
        self.add_address(&mut buckets, rule, "miss", address);
        if buckets.0.is_empty() {
            return None;
        }
        let asked = buckets.as_ports();
        let replies = self.quotas.take(&asked, 1).await;
        let decision = self.or_pass(policy::MISS, &asked, replies)?;
        if !decision.granted {
            let is_sites = Some(decision.rule) != rule;
            let prefix = site(address).filter(|_| is_sites);
            let prefix = prefix.unwrap_or_else(|| rate_limit_prefix(address));
            self.throttled.throttle(prefix, decision, self.clock.now());
        }
        Some(decision)
    }

    /// Counts an address, and the site that it belongs to if that can have many of them.
    fn add_address(
        &self,
        buckets: &mut Buckets,
        rule: Option<QuotaRule>,
        what: &str,
        address: IpAddr,
    ) {
        buckets.add(rule, || {
            format!("{what}/address/{}", rate_limit_prefix(address))
        });
        if let Some(site) = site(address) {
            let times = self.settings.ipv6_site_factor.into();
            buckets.add(rule.and_then(|rule| widen_rule(rule, times)), || {
                format!("{what}/site/{site}")
            });
        }
    }

    /// Whose links are limited, as last read.
    #[must_use]
    pub fn redirection_rules(&self) -> Arc<RedirectionRules> {
        self.redirections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Reads whose links are limited. To be called about once a second.
    pub async fn refresh_redirections(&self) -> PortResult<Arc<RedirectionRules>> {
        let own = self.accounts.redirection_limits().await?;
        let rules = Arc::new(RedirectionRules::new(&self.settings, own));
        let mut throttled = self
            .redirections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *throttled = rules.clone();
        Ok(rules)
    }

    async fn take(
        &self,
        name: &'static str,
        buckets: &Buckets,
        count: u64,
    ) -> PortResult<Option<Decision>> {
        if buckets.0.is_empty() {
            return Ok(None);
        }
        let asked = buckets.as_ports();
        let replies = self.quotas.take(&asked, count).await?;
        Ok(self.decide(name, &asked, replies))
    }

    /// Returns what the replies come to, and counts a refusal.
    fn decide(
        &self,
        name: &'static str,
        asked: &[Bucket<'_>],
        replies: Vec<QuotaReply>,
    ) -> Option<Decision> {
        let rules = asked.iter().map(|bucket| bucket.rule);
        let decision = tightest(name, rules.zip(replies));
        if decision.is_some_and(|decision| !decision.granted) {
            let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            *refusals.entry(name).or_default() += 1;
        }
        decision
    }

    /// Returns how often each [`policy`] has refused something since the start; those that never did are not in it.
    #[must_use]
    pub fn refusals(&self) -> BTreeMap<&'static str, u64> {
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.clone()
    }

    /// The same for clicks, which no failing engine stops.
    fn or_pass(
        &self,
        name: &'static str,
        asked: &[Bucket<'_>],
        replies: PortResult<Vec<QuotaReply>>,
    ) -> Option<Decision> {
        match replies {
            Ok(replies) => {
                self.failing.store(false, Ordering::Relaxed);
                self.decide(name, asked, replies)
            }
            Err(failure) => {
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(event = event::STORE_FAILED, %failure, limit = name, "clicks are not limited for now");
                }
                None
            }
        }
    }
}

/// The rule of a whole site; `None` without a limit on sites.
fn widen_rule(rule: QuotaRule, times: u64) -> Option<QuotaRule> {
    let amount = rule.amount.saturating_mul(times);
    (times > 0).then_some(QuotaRule { amount, ..rule })
}

/// Names and rules of what is taken from.
#[derive(Debug, Default)]
struct Buckets(Vec<(String, QuotaRule)>);

impl Buckets {
    fn add(&mut self, rule: Option<QuotaRule>, name: impl FnOnce() -> String) {
        self.0.extend(rule.map(|rule| (name(), rule)));
    }

    fn as_ports(&self) -> Vec<Bucket<'_>> {
        let buckets = self.0.iter();
        buckets
            .map(|(name, rule)| Bucket { name, rule: *rule })
            .collect()
    }
}

/// Of the buckets that refuse, the one that refuses longest; of those that grant, the one with the least left.
fn tightest(
    name: &'static str,
    replies: impl Iterator<Item = (QuotaRule, QuotaReply)>,
) -> Option<Decision> {
    let decisions = replies.map(|(rule, reply)| Decision {
        granted: reply.granted,
        name,
        rule,
        remaining: reply.remaining,
        retry_after: reply.retry_after,
        reset_after: reply.reset_after,
    });
    decisions.min_by_key(|said| {
        let wait = std::cmp::Reverse(said.retry_after);
        (said.granted, wait, said.remaining)
    })
}
