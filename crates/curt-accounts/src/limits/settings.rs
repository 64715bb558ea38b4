use std::time::Duration;

use curt_core::ports::QuotaRule;

/// How much of each is allowed to whoever has no allowance of their own. `None`: as much as they like.
///
/// Each is a bucket of `amount`, all of which may be taken at once and which refills evenly: within any `period` that is
/// less than twice the amount. [`LimitSettings::guard`] makes one that keeps its number in every period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    pub creations_per_key: Option<QuotaRule>,
    pub creations_per_user: Option<QuotaRule>,
    /// Of links made without credentials.
    pub creations_per_address: Option<QuotaRule>,
    pub redirections_per_key: Option<QuotaRule>,
    pub redirections_per_user: Option<QuotaRule>,
    pub misses_per_address: Option<QuotaRule>,
    /// Of failed ones.
    pub sign_ins_per_address: Option<QuotaRule>,
    /// Of failed ones, by all who are not known to the account together, and by each who is.
    pub sign_ins_per_account: Option<QuotaRule>,
    pub sign_ups_per_address: Option<QuotaRule>,
    /// Of wrong ones, by somebody who is signed in.
    pub password_checks_per_user: Option<QuotaRule>,
    /// Tries at one link's password from one address.
    pub link_passwords_per_address: Option<QuotaRule>,
    pub link_passwords_per_link: Option<QuotaRule>,
    /// Passwords that are set for links, by all API keys of a user together.
    pub password_links_per_user: Option<QuotaRule>,
    /// Without credentials.
    pub password_links_per_address: Option<QuotaRule>,
    /// How many times what an address may have an IPv6 site (/48) may have. 0: no limit on sites.
    pub ipv6_site_factor: u32,
}

impl LimitSettings {
    /// No limit at all.
    pub const NONE: Self = Self {
        creations_per_key: None,
        creations_per_user: None,
        creations_per_address: None,
        redirections_per_key: None,
        redirections_per_user: None,
        misses_per_address: None,
        sign_ins_per_address: None,
        sign_ins_per_account: None,
        sign_ups_per_address: None,
        password_checks_per_user: None,
        link_passwords_per_address: None,
        link_passwords_per_link: None,
        password_links_per_user: None,
        password_links_per_address: None,
        ipv6_site_factor: 16,
    };

    /// The bucket that gives no more than `rule.amount` in *any* period: half of it at once, and the other half as it
    /// refills. A bucket of `n` gives at most `2 n - 1` in less than a period.
    #[must_use]
    pub fn guard(rule: QuotaRule) -> QuotaRule {
        QuotaRule {
            amount: rule.amount.div_ceil(2),
            ..rule
        }
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        let per = |amount, seconds| {
            Some(QuotaRule {
                amount,
                period: Duration::from_secs(seconds),
            })
        };
        let guard = |amount, seconds| per(amount, seconds).map(Self::guard);
        Self {
            creations_per_address: per(60, 3_600),
            misses_per_address: guard(30, 60),
            sign_ins_per_address: guard(10, 60),
            sign_ins_per_account: guard(20, 600),
            sign_ups_per_address: per(10, 60),
            password_checks_per_user: guard(10, 600),
            link_passwords_per_address: guard(5, 60),
            link_passwords_per_link: guard(50, 60),
            password_links_per_user: per(600, 3_600),
            password_links_per_address: per(60, 3_600),
            ..Self::NONE
        }
    }
}
