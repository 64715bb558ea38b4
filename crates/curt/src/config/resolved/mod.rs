//! What the settings mean: typed, checked against each other, ready for the parts that use them.

mod accounts;
mod cache;
mod clicks;
mod keys;
mod server;
mod store;

use std::path::PathBuf;
use std::time::Duration;

use curt_accounts::{AccountSettings, LimitSettings};
use curt_core::limits::{PURGE_BATCH_MAX, TARGET_BYTES_MAX};
use curt_core::{ClockGuardSettings, KeyRules, RedirectStatus};
use curt_http::{AccessScope, HttpSettings, PrivateDenied};
use curt_keys::KeySettings;
use curt_links::invalidate::PublisherSettings;
use curt_links::shared_cache::SharedCacheSettings;
use curt_links::{LinkSettings, PurgeSettings, ResolverSettings};
use toml::Table;

pub(crate) use self::clicks::{ClickRuleSettings, ClickSettings};
use super::check::{at, positive, within};
use super::raw::{self, Raw};
use super::{ConfigError, units};
use crate::wiring::masked;

pub(crate) use store::{StoreSettings, check_nodes, clicks_beside};

/// The whole configuration.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) data_dir: PathBuf,
    pub(crate) http: HttpSettings,
    pub(crate) admin_listen: Option<std::net::SocketAddr>,
    pub(crate) agent_listen: Option<std::net::SocketAddr>,
    pub(crate) api_threads: usize,
    pub(crate) huge_pages: bool,
    pub(crate) store: StoreSettings,
    pub(crate) cache: ResolverSettings,
    pub(crate) shared_cache: SharedCacheSettings,
    pub(crate) publisher: PublisherSettings,
    pub(crate) keys: KeySettings,
    pub(crate) links: LinkSettings,
    pub(crate) blocklist: Option<BlocklistSettings>,
    /// What stands in the middle of QR codes.
    pub(crate) qr_logo: Option<PathBuf>,
    pub(crate) accounts: AccountSettings,
    pub(crate) limits: LimitSettings,
    /// `None`: clicks are not counted.
    pub(crate) clicks: Option<ClickSettings>,
    pub(crate) click_rules: ClickRuleSettings,
    pub(crate) purge: PurgeSettings,
    pub(crate) clock_guard: ClockGuardSettings,
    pub(crate) log: LogSettings,
    written: Table,
}

/// A file that is looked at again and again.
#[derive(Debug)]
pub(crate) struct BlocklistSettings {
    pub(crate) path: PathBuf,
    pub(crate) reload: Duration,
}

#[derive(Debug)]
pub(crate) struct LogSettings {
    pub(crate) level: String,
    pub(crate) format: LogFormat,
    /// `None`: requests are not logged.
    pub(crate) access: Option<AccessScope>,
    /// `None`: standard error.
    pub(crate) access_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

impl Config {
    pub(super) fn resolve(written: Table) -> Result<Self, ConfigError> {
        let raw: Raw = written
            .clone()
            .try_into()
            .map_err(|problem: toml::de::Error| ConfigError::new(problem.message().to_owned()))?;
        let data_dir = PathBuf::from(&raw.data_dir);
        let keys = keys::resolve(&raw.keys)?;
        let store = store::resolve(&raw, &data_dir, keys.strategy)?;
        let http = server::http(
            &raw.server,
            &raw.pages,
            private_denied(&raw.links)?,
            &store,
            accounts::scans(&raw.limits, &store)?,
        )?;
        let click_rules = clicks::rules(&raw.clicks)?;
        let grace = at("links.grace", units::duration(&raw.links.grace))?;
        Ok(Self {
            admin_listen: server::admin_listen(&raw.server, http.server.listen)?,
            agent_listen: server::agent_listen(&raw.server, http.server.listen)?,
            api_threads: within("server.api_threads", raw.server.api_threads, 1, 256)?,
            huge_pages: raw.server.huge_pages,
            cache: ResolverSettings {
                grace,
                hides_private: http.redirect.private_denied == PrivateDenied::Hidden,
                ..cache::cache(&raw.cache, &store)?
            },
            shared_cache: cache::shared_cache(&raw.cache)?,
            publisher: PublisherSettings {
                wait_max: at(
                    "cache.publish_wait",
                    units::duration(&raw.cache.publish_wait),
                )?,
            },
            clicks: clicks::resolve(&raw.clicks, &data_dir, &store, http.server.workers)?,
            click_rules,
            store,
            links: LinkSettings {
                grace,
                ..links(&raw.links, &raw.server, &keys)?
            },
            blocklist: blocklist(&raw.links)?,
            qr_logo: (!raw.pages.qr_logo.is_empty()).then(|| PathBuf::from(&raw.pages.qr_logo)),
            accounts: accounts::resolve(&raw.accounts)?,
            limits: accounts::limits(&raw.limits)?,
            purge: PurgeSettings {
                grace,
                ..purge(&raw.purge)?
            },
            clock_guard: ClockGuardSettings {
                jump_max: positive("purge.clock_jump_max", &raw.purge.clock_jump_max)?,
                settle: at(
                    "purge.clock_settle",
                    units::duration(&raw.purge.clock_settle),
                )?,
            },
            log: log(&raw.log)?,
            data_dir,
            http,
            keys,
            written,
        })
    }

    /// The settings as they are used, with passwords in addresses masked.
    pub(crate) fn shown(&self) -> Table {
        let mut shown = self.written.clone();
        mask(&mut shown);
        shown
    }
}

fn links(
    raw: &raw::Links,
    server: &raw::Server,
    keys: &KeySettings,
) -> Result<LinkSettings, ConfigError> {
    let status = u16::try_from(raw.default_status)
        .ok()
        .and_then(RedirectStatus::from_code);
    if raw.schemes.is_empty() {
        return at(
            "links.schemes",
            Err("needs at least one scheme, such as \"https\"".to_owned()),
        );
    }
    if let Some(bad) = raw.schemes.iter().find(|scheme| !is_scheme(scheme)) {
        return at("links.schemes", Err(format!("{bad:?} is not a URL scheme")));
    }
    if let Some(bad) = raw.schemes.iter().find(|scheme| !names_a_host(scheme)) {
        let why =
            format!("{bad:?} never works: a target must name a host, as http, https and ftp do");
        return at("links.schemes", Err(why));
    }
    Ok(LinkSettings {
        target_bytes_max: within(
            "links.target_bytes_max",
            raw.target_bytes_max,
            16,
            TARGET_BYTES_MAX as u64,
        )?,
        schemes: raw
            .schemes
            .iter()
            .map(|scheme| scheme.to_ascii_lowercase().into())
            .collect(),
        own_hosts: server::own_hosts(server)?,
        keys: KeyRules::new(keys.alphabet, keys.unwanted.clone()),
        default_expiry: at(
            "links.default_expiry",
            units::duration_or_never(&raw.default_expiry),
        )?,
        default_status: at(
            "links.default_status",
            status.ok_or_else(|| "use 301, 302, 307 or 308".to_owned()),
        )?,
        ..LinkSettings::default()
    })
}

fn blocklist(raw: &raw::Links) -> Result<Option<BlocklistSettings>, ConfigError> {
    let reload = positive("links.blocklist_reload", &raw.blocklist_reload)?;
    Ok((!raw.blocklist.is_empty()).then(|| BlocklistSettings {
        path: PathBuf::from(&raw.blocklist),
        reload,
    }))
}

fn private_denied(raw: &raw::Links) -> Result<PrivateDenied, ConfigError> {
    match raw.private_denied {
        403 => Ok(PrivateDenied::Forbidden),
        404 => Ok(PrivateDenied::Hidden),
        other => at(
            "links.private_denied",
            Err(format!("{other}: use 403 or 404")),
        ),
    }
}

/// RFC 3986: a letter, then letters, digits, plus, minus or dot.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Whether a URL of this scheme names a host, without which no link is made, and leads a browser there.
fn names_a_host(scheme: &str) -> bool {
    !HOSTLESS.iter().any(|one| one.eq_ignore_ascii_case(scheme))
}

const HOSTLESS: [&str; 14] = [
    "about",
    "blob",
    "cid",
    "data",
    "file",
    "javascript",
    "magnet",
    "mailto",
    "mid",
    "news",
    "sms",
    "tel",
    "urn",
    "vbscript",
];

fn purge(raw: &raw::Purge) -> Result<PurgeSettings, ConfigError> {
    Ok(PurgeSettings {
        scheduled: raw.scheduled,
        every: positive("purge.every", &raw.every)?,
        batch: within("purge.batch", raw.batch, 1, PURGE_BATCH_MAX as u64)?,
        on_access: raw.on_access,
        rate_max: u32::try_from(within("purge.rate_max", raw.rate_max, 1, 1_000_000)?)
            .unwrap_or(u32::MAX),
        recycle: raw.recycle,
        quarantine: at("purge.quarantine", units::duration(&raw.quarantine))?,
        ..PurgeSettings::default()
    })
}

fn log(raw: &raw::Log) -> Result<LogSettings, ConfigError> {
    at("log.level", log_filter(&raw.level))?;
    Ok(LogSettings {
        level: raw.level.clone(),
        format: match raw.format.as_str() {
            "text" => LogFormat::Text,
            "json" => LogFormat::Json,
            other => return at("log.format", Err(format!("{other:?}: use text or json"))),
        },
        access: match raw.access.as_str() {
            "off" => None,
            "errors" => Some(AccessScope::Errors),
            "all" => Some(AccessScope::All),
            other => {
                let why = format!("{other:?}: use off, errors or all");
                return at("log.access", Err(why));
            }
        },
        access_file: (!raw.access_file.is_empty()).then(|| PathBuf::from(&raw.access_file)),
    })
}

const LOG_LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The filter's own syntax takes a misspelt level for the name of a target, and is silent about everything else.
fn log_filter(text: &str) -> Result<(), String> {
    let levels = LOG_LEVELS.join(", ");
    for directive in text.split(',').map(str::trim) {
        let level = directive.rsplit('=').next().unwrap_or_default();
        // A comma or an equals sign may stand in the fields of a span, too.
        if !LOG_LEVELS.contains(&level.to_ascii_lowercase().as_str()) && !text.contains('{') {
            return Err(format!(
                "{directive:?} is not a level: use one of {levels}, or TARGET=LEVEL, such as \"info,curt_http=debug\""
            ));
        }
    }
    let parsed = tracing_subscriber::EnvFilter::try_new(text);
    parsed.map(drop).map_err(|problem| problem.to_string())
}

fn mask(table: &mut Table) {
    table.iter_mut().for_each(|(_, value)| mask_value(value));
}

fn mask_value(value: &mut toml::Value) {
    match value {
        toml::Value::Table(inner) => mask(inner),
        toml::Value::Array(items) => items.iter_mut().for_each(mask_value),
        toml::Value::String(text) => *text = masked(text),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_addresses_are_masked() {
        let mut table: Table = r#"
            links = "postgres://me:secret@h1:5432,h2/db?sslmode=require"
            [store]
            pool = ["redis://:hidden@h", "redis+sentinel://h1,h2/m?sentinel_password=hidden&prefix=p"]
            leases = "zookeeper://h1,h2/curt"
            plain = "sqlite:curt.db"
        "#
        .parse()
        .unwrap();
        mask(&mut table);
        let shown = table.to_string();
        for hidden in ["secret", "hidden"] {
            assert!(!shown.contains(hidden), "{shown}");
        }
        for kept in [
            "postgres://me:***@h1:5432,h2/db?sslmode=require",
            "redis://:***@h",
            "redis+sentinel://h1,h2/m?sentinel_password=***&prefix=p",
            "zookeeper://h1,h2/curt",
            "sqlite:curt.db",
        ] {
            assert!(shown.contains(kept), "{kept} in {shown}");
        }
    }
}
