use std::time::Duration;

use curt_accounts::{
    AccountSettings, BulkheadSettings, DisabledLinks, LimitSettings, PasswordSettings, SignUp,
};
use curt_core::ports::QuotaRule;
use curt_http::{AbandonedReads, ScanSettings};

use crate::config::check::{at, positive, within};
use crate::config::{ConfigError, StoreSettings, raw, units};

const KIB: u64 = 1_024;
/// Below the first a hash is guessed too fast, above the second a few sign-ins use up a machine.
const PASSWORD_KIB: (u64, u64) = (64, KIB * KIB);

pub(super) fn resolve(raw: &raw::Accounts) -> Result<AccountSettings, ConfigError> {
    Ok(AccountSettings {
        sign_up: match raw.sign_up.as_str() {
            "closed" => SignUp::Closed,
            "invite" => SignUp::Invite,
            "open" => SignUp::Open,
            other => {
                let known = format!("{other:?}: use closed, invite or open");
                return at("accounts.sign_up", Err(known));
            }
        },
        disabled_links: match raw.disabled_links.as_str() {
            "serve" => DisabledLinks::Serve,
            "gone" => DisabledLinks::Gone,
            other => {
                let known = format!("{other:?}: use serve or gone");
                return at("accounts.disabled_links", Err(known));
            }
        },
        session_idle: life("accounts.session_idle", &raw.session_idle)?,
        session_max: life("accounts.session_max", &raw.session_max)?,
        passwords: PasswordSettings {
            memory_kib: memory_kib(&raw.password_memory)?,
            passes: narrow(within(
                "accounts.password_passes",
                raw.password_passes,
                1,
                100,
            )?),
            hashers: within("accounts.password_hashers", raw.password_hashers, 1, 64)?,
            link_hashers: within(
                "accounts.link_password_hashers",
                raw.link_password_hashers,
                1,
                64,
            )?,
        },
    })
}

/// A session is looked at and written down by the minute.
fn life(key: &str, text: &str) -> Result<Duration, ConfigError> {
    let life = positive(key, text)?;
    if life < Duration::from_secs(60) {
        return at(key, Err("use a minute or more".to_owned()));
    }
    Ok(life)
}

fn memory_kib(text: &str) -> Result<u32, ConfigError> {
    let key = "accounts.password_memory";
    let kib = at(key, units::size(text))? / KIB;
    let (least, most) = PASSWORD_KIB;
    if !(least..=most).contains(&kib) {
        return at(key, Err(format!("{text}: use {least}KiB to 1GiB")));
    }
    Ok(narrow(kib))
}

fn narrow(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

pub(super) fn limits(raw: &raw::Limits) -> Result<LimitSettings, ConfigError> {
    Ok(LimitSettings {
        creations_per_key: rule("creations_per_key", &raw.creations_per_key)?,
        creations_per_user: rule("creations_per_user", &raw.creations_per_user)?,
        creations_per_address: rule("creations_per_address", &raw.creations_per_address)?,
        redirections_per_key: rule("redirections_per_key", &raw.redirections_per_key)?,
        redirections_per_user: rule("redirections_per_user", &raw.redirections_per_user)?,
        misses_per_address: guard("misses_per_address", &raw.misses_per_address)?,
        sign_ins_per_address: guard("sign_ins_per_address", &raw.sign_ins_per_address)?,
        sign_ins_per_account: guard("sign_ins_per_account", &raw.sign_ins_per_account)?,
        sign_ups_per_address: rule("sign_ups_per_address", &raw.sign_ups_per_address)?,
        password_checks_per_user: guard("password_checks_per_user", &raw.password_checks_per_user)?,
        link_passwords_per_address: guard(
            "link_passwords_per_address",
            &raw.link_passwords_per_address,
        )?,
        link_passwords_per_link: guard("link_passwords_per_link", &raw.link_passwords_per_link)?,
        password_links_per_user: rule("password_links_per_user", &raw.password_links_per_user)?,
        password_links_per_address: rule(
            "password_links_per_address",
            &raw.password_links_per_address,
        )?,
        ipv6_site_factor: narrow(within(
            "limits.ipv6_site_factor",
            raw.ipv6_site_factor,
            0,
            65_536,
        )?),
    })
}

/// Long reads. No more of them reach a store than its own queue holds.
pub(super) fn scans(raw: &raw::Limits, store: &StoreSettings) -> Result<ScanSettings, ConfigError> {
    Ok(ScanSettings {
        reads: BulkheadSettings {
            running: within("limits.scans_running", raw.scans_running, 1, 128)?,
            waiting: within("limits.scans_waiting", raw.scans_waiting, 0, 10_000)?,
            per_caller: within("limits.scans_per_user", raw.scans_per_user, 1, 10_000)?,
        },
        exports: BulkheadSettings {
            running: within("limits.exports_running", raw.exports_running, 1, 128)?,
            waiting: 0,
            per_caller: within("limits.exports_per_user", raw.exports_per_user, 1, 128)?,
        },
        abandoned: match store.links.kind().is_shared() {
            true => AbandonedReads::GoOn,
            false => AbandonedReads::End,
        },
    })
}

/// A limit that is kept in every period, because it is there against guessing.
fn guard(name: &str, text: &str) -> Result<Option<QuotaRule>, ConfigError> {
    Ok(rule(name, text)?.map(LimitSettings::guard))
}

fn rule(name: &str, text: &str) -> Result<Option<QuotaRule>, ConfigError> {
    match text {
        "" => Ok(None),
        rate => at(&format!("limits.{name}"), units::rate(rate)).map(Some),
    }
}
