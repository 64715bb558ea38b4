//! What every handler can reach.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use curt_accounts::AccountServices;
use curt_clicks::report::Reports;
use curt_core::Clock;
use curt_links::{Links, Resolver};

use crate::metrics::HttpMetrics;
use crate::settings::HttpSettings;
use crate::visits::RouterVisits;

/// The parts of the product that HTTP makes reachable.
pub struct App {
    pub links: Arc<Links>,
    pub resolver: Arc<Resolver>,
    pub accounts: AccountServices,
    pub clock: Arc<dyn Clock>,
    pub settings: HttpSettings,
    pub metrics: HttpMetrics,
    pub ready: Arc<Readiness>,
    pub public: PublicUrl,
    /// Where visits are written down; `None`: nowhere.
    pub visits: Option<RouterVisits>,
    /// What was counted of visits; `None`: nothing is.
    pub reports: Option<Arc<Reports>>,
}

/// The address that short URLs start with.
#[derive(Debug)]
pub struct PublicUrl(OnceLock<String>);

impl PublicUrl {
    /// The configured address, or none until [`listening_on`](Self::listening_on) says what it is.
    #[must_use]
    pub fn new(configured: Option<&str>) -> Self {
        let base = OnceLock::new();
        if let Some(configured) = configured {
            base.get_or_init(|| configured.trim_end_matches('/').to_owned());
        }
        Self(base)
    }

    /// Tells the address that the server listens on; it counts only if none was configured. A wildcard address is not
    /// one that a browser can open, so the machine's own stands for it.
    pub fn listening_on(&self, address: SocketAddr) {
        self.0.get_or_init(|| {
            let ip = match address.ip() {
                ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
                ip => ip,
            };
            format!("http://{}", SocketAddr::new(ip, address.port()))
        });
    }

    /// Without a slash at the end.
    #[must_use]
    pub fn base(&self) -> &str {
        self.0.get().map_or("http://localhost", String::as_str)
    }

    #[must_use]
    pub fn short_url(&self, key: &str) -> String {
        format!("{}/{key}", self.base())
    }
}

/// Whether the process should get requests: every named check must have passed, and the process not be stopping.
#[derive(Debug, Default)]
pub struct Readiness {
    checks: Mutex<Vec<(&'static str, bool)>>,
}

impl Readiness {
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Sets one check, which is made if it is new. A part that starts names its check as failed first.
    pub fn set(&self, check: &'static str, passed: bool) {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        match checks.iter_mut().find(|(name, _)| *name == check) {
            Some((_, state)) => *state = passed,
            None => checks.push((check, passed)),
        }
    }

    /// Every check, in the order in which they were named.
    #[must_use]
    pub fn checks(&self) -> Vec<(&'static str, bool)> {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.clone()
    }

    /// Nothing is ready before the first check has been named.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let checks = self.checks();
        !checks.is_empty() && checks.iter().all(|(_, passed)| *passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_only_when_every_check_has_passed() {
        let ready = Readiness::new();
        assert!(!ready.is_ready());
        ready.set("store", false);
        ready.set("keys", true);
        assert!(!ready.is_ready());
        ready.set("store", true);
        assert!(ready.is_ready());
        ready.set("serving", false);
        assert!(!ready.is_ready());
        assert_eq!(
            ready.checks(),
            [("store", true), ("keys", true), ("serving", false)]
        );
    }

    #[test]
    fn the_configured_address_wins_over_the_one_listened_on() {
        let address = "0.0.0.0:8080".parse().unwrap();
        let configured = PublicUrl::new(Some("https://sho.rt/"));
        configured.listening_on(address);
        assert_eq!(configured.short_url("abc"), "https://sho.rt/abc");
        let listening = PublicUrl::new(None);
        listening.listening_on(address);
        assert_eq!(listening.short_url("abc"), "http://127.0.0.1:8080/abc");
    }
}
