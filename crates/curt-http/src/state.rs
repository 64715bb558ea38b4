//! What every handler can reach.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use curt_accounts::AccountServices;
use curt_clicks::classify::{ClickRules, CurrentReference};
use curt_clicks::erase::ClickEraser;
use curt_clicks::report::Reports;
use curt_core::{Clock, PortResult};
use curt_links::{LinkOperations, LinkPolicy, Links, Resolver};

use crate::access_log::AccessLog;
use crate::body_budget::BodyBudget;
use crate::metrics::HttpMetrics;
use crate::readiness::Readiness;
use crate::redirect::clicks::RouterClicks;
use crate::scans::Scans;
use crate::settings::HttpSettings;
use crate::system::SystemSource;

/// The parts of the product that HTTP makes reachable.
pub struct App {
    pub links: Arc<Links>,
    pub resolver: Arc<Resolver>,
    pub policy: Arc<LinkPolicy>,
    pub accounts: AccountServices,
    pub clock: Arc<dyn Clock>,
    pub settings: HttpSettings,
    pub metrics: HttpMetrics,
    /// `None`: requests are not logged.
    pub access_log: Option<Arc<AccessLog>>,
    pub ready: Arc<Readiness>,
    /// What request bodies may hold.
    pub bodies: Arc<BodyBudget>,
    pub public: PublicUrl,
    /// Lists and reports that are being read.
    pub scans: Arc<Scans>,
    /// Where clicks are written down; `None`: nowhere.
    pub clicks: Option<RouterClicks>,
    /// Who counts as a person, for limits on clicks.
    pub click_reference: CurrentReference,
    /// What was counted of clicks; `None`: nothing is.
    pub reports: Option<Arc<Reports>>,
    /// Removes clicks on request; `None`: nothing is counted.
    pub click_eraser: Option<Arc<ClickEraser>>,
    /// The process as its administrators see it, from when it serves.
    pub system: OnceLock<SystemSource>,
}

impl App {
    pub(crate) fn link_operations(&self) -> LinkOperations<'_> {
        LinkOperations {
            links: &self.links,
            accounts: &self.accounts,
        }
    }

    /// The rules for user agents that are in force.
    pub(crate) fn click_rules(&self) -> Arc<ClickRules> {
        Arc::clone(&self.click_reference.now().rules)
    }

    /// Puts changed limits on clicks in force. To be called after every change of an account's limits.
    pub(crate) async fn refresh_limited(&self) -> PortResult<()> {
        self.policy.limit(self.accounts.read_limited().await?);
        Ok(())
    }
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

    /// The page to sign up at with an invitation.
    #[must_use]
    pub fn invite_url(&self, code: &str) -> String {
        format!("{}/sign-up?invite={code}", self.base())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
