//! Guesses at the passwords of people and of links. Only wrong ones count, but each is counted before it is tried: of
//! many that come at once no more are tried than are allowed. What turns out to be no wrong guess is given back.
//!
//! Strangers share one limit per account, so that many addresses together guess no faster than one. Whoever signed in to
//! the account before has a limit of their own, which strangers cannot use up: a browser that shows its token, or an
//! address that this process remembers.

use std::net::IpAddr;

use curt_core::names::event;
use curt_core::{LinkId, OwnerId, PortResult};
use quick_cache::sync::Cache;

use super::address::rate_limit_prefix;
use super::{Buckets, Decision, Limits, policy};
use crate::admit::normalized_email;
use crate::token;

/// Addresses that are remembered for their accounts, over all accounts; the least used are forgotten.
const KNOWN_MAX: usize = 16_384;

/// Accounts, by digest, and the addresses from which somebody signed in to them.
pub(super) struct KnownAddresses(Cache<(String, IpAddr), ()>);

impl Default for KnownAddresses {
    fn default() -> Self {
        Self(Cache::new(KNOWN_MAX))
    }
}

/// A guess that was counted, to be given back by [`Limits::give_back`] unless it was wrong.
#[derive(Debug)]
pub struct Guess {
    /// `None`: there is no limit.
    pub decision: Option<Decision>,
    buckets: Buckets,
    /// Who is known once the guess was right.
    source: Option<(String, IpAddr)>,
}

impl Limits {
    /// Counts a try to sign in. `browser` names one that is known to the account. A failing engine is an error: nobody
    /// may guess without limit.
    pub async fn sign_ins(
        &self,
        address: IpAddr,
        email: &str,
        browser: Option<&str>,
    ) -> PortResult<Guess> {
        let (by_address, by_account) = (
            self.settings.sign_ins_per_address,
            self.settings.sign_ins_per_account,
        );
        let address = rate_limit_prefix(address);
        // Somebody chose this text: hashed, it has a length that we chose.
        let account = digest(&normalized_email(email));
        let source = (account, address);
        let account = &source.0;
        let mut buckets = Buckets::default();
        if let Some(browser) = browser {
            buckets.add(by_account, || {
                format!("sign-in/account/{account}/browser/{browser}")
            });
        } else {
            self.add_address(&mut buckets, by_address, "sign-in", address);
            let is_known = self.known.0.get(&source).is_some();
            buckets.add(by_account, || match is_known {
                true => format!("sign-in/account/{account}/address/{address}"),
                false => format!("sign-in/account/{account}"),
            });
        }
        self.guess(policy::SIGN_IN, buckets, Some(source)).await
    }

    /// Counts a try of somebody who is signed in at their own password.
    pub async fn password_checks(&self, user: OwnerId) -> PortResult<Guess> {
        let mut buckets = Buckets::default();
        buckets.add(self.settings.password_checks_per_user, || {
            format!("password/user/{user}")
        });
        self.guess(policy::PASSWORD, buckets, None).await
    }

    /// Counts a try at a link's password. A failing engine is an error.
    pub async fn link_passwords(&self, address: IpAddr, link: &LinkId) -> PortResult<Guess> {
        let mut buckets = Buckets::default();
        let by_address = self.settings.link_passwords_per_address;
        let what = format!("link-password/{link}");
        self.add_address(&mut buckets, by_address, &what, address);
        buckets.add(self.settings.link_passwords_per_link, || {
            format!("link-password/{link}")
        });
        self.guess(policy::LINK_PASSWORD, buckets, None).await
    }

    /// Counts a new account, made or refused. A failing engine is an error.
    pub async fn sign_ups(&self, address: IpAddr) -> PortResult<Option<Decision>> {
        let mut buckets = Buckets::default();
        let rule = self.settings.sign_ups_per_address;
        self.add_address(&mut buckets, rule, "sign-up", address);
        self.take(policy::SIGN_UP, &buckets, 1).await
    }

    /// Gives a guess back that was not wrong; `was_right` makes its address known to the account. A failing engine costs
    /// the guess, which comes back with time.
    pub async fn give_back(&self, guess: Guess, was_right: bool) {
        if let Some(source) = guess.source.filter(|_| was_right) {
            self.known.0.insert(source, ());
        }
        let buckets = guess.buckets.as_ports();
        let given = self.quotas.give_back(&buckets, 1).await;
        if let Err(failure) = given {
            tracing::warn!(event = event::STORE_FAILED, %failure, "guess not given back");
        }
    }

    async fn guess(
        &self,
        name: &'static str,
        buckets: Buckets,
        source: Option<(String, IpAddr)>,
    ) -> PortResult<Guess> {
        let decision = self.take(name, &buckets, 1).await?;
        Ok(Guess {
            decision,
            buckets,
            source,
        })
    }
}

fn digest(text: &str) -> String {
    let hash = token::hash(text);
    hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
