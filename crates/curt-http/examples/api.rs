//! The whole HTTP surface over memory, for trying the API and for checks of it from outside.
//!
//! `cargo run -p curt-http --example api -- 127.0.0.1:8080 [anonymous]` prints an API key alone on its first line and
//! serves until the process is stopped; nothing is kept.

use std::env;
use std::sync::{Arc, OnceLock};

use curt_accounts::{
    AccountError, AccountServices, AccountSettings, LimitSettings, NewKey, Origin,
};
use curt_clicks::classify::{CurrentReference, ReferenceData};
use curt_clicks::report::Reports;
use curt_core::{Allowance, Alphabet, Clock, Scopes, SystemClock};
use curt_http::server::Server;
use curt_http::{
    App, BodyBudget, HttpMetrics, HttpSettings, PublicUrl, Readiness, Scans, admin, api,
};
use curt_links::{
    LinkMetrics, LinkPolicy, LinkSettings, Links, OwnHost, ResolveMetrics, Resolver,
    ResolverSettings,
};
use curt_memory::{MemoryAccounts, MemoryClickStore, MemoryLinkStore, MemoryQuotas};
use curt_testkit::keys::random_supply;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut settings = HttpSettings::default();
    for argument in env::args().skip(1) {
        match argument.as_str() {
            "anonymous" => settings.api.anonymous_create = true,
            listen => settings.server.listen = listen.parse()?,
        }
    }
    settings.api.metrics_on_main = true;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mut registry = Registry::default();
    let metrics = HttpMetrics::register(&mut registry);
    let store = Arc::new(MemoryLinkStore::new());
    let policy = Arc::new(LinkPolicy::default());
    let resolver = Resolver::new(
        ResolverSettings::default(),
        store.clone(),
        Arc::clone(&policy),
        Arc::clone(&clock),
        ResolveMetrics::register(&mut registry),
    );
    let links = Links::new(
        LinkSettings {
            own_hosts: vec![settings.server.listen.to_string().parse::<OwnHost>()?],
            ..LinkSettings::default()
        },
        store.into(),
        random_supply(Alphabet::Base62, 7),
        Arc::clone(&policy),
        Arc::clone(&resolver),
        Arc::clone(&clock),
        LinkMetrics::register(&mut registry),
    );
    let accounts = AccountServices::new(
        AccountSettings::default(),
        LimitSettings::default(),
        Arc::new(MemoryAccounts::new()),
        Arc::new(MemoryQuotas::new(Arc::clone(&clock))),
        Arc::clone(&clock),
    )?;
    let token = issue_key(&accounts).await?;

    let app = Arc::new(App {
        access_log: None,
        clicks: None,
        click_reference: CurrentReference::fixed(ReferenceData::default()),
        click_eraser: None,
        reports: Some(reports()),
        links,
        resolver: Arc::clone(&resolver),
        policy,
        accounts,
        clock: Arc::clone(&clock),
        public: PublicUrl::new(settings.api.public_url.as_deref()),
        bodies: BodyBudget::new(&settings.server, metrics.clone()),
        metrics: metrics.clone(),
        ready: Readiness::new(),
        scans: Scans::new(settings.scans),
        settings: settings.clone(),
        system: OnceLock::new(),
    });
    let router = api::router(Arc::clone(&app)).merge(admin::metrics_route(Arc::new(registry)));
    let server = Server::bind(&settings, resolver, clock, metrics, router)?;
    app.public.listening_on(server.local_addr());
    app.ready.pass("serving");
    println!("{token}");
    eprintln!("serving on http://{}", server.local_addr());
    server.run(CancellationToken::new()).await?;
    Ok(())
}

/// Returns a new key of the operator's that may do everything.
async fn issue_key(accounts: &AccountServices) -> Result<String, AccountError> {
    let key = NewKey {
        user: accounts.users.ensure_operator().await?.id,
        name: "example".to_owned(),
        scopes: Scopes::ALL,
        allowance: Allowance::default(),
        expires_at: None,
    };
    let issuing = accounts.api_keys.issue(key, Scopes::ALL, Origin::OPERATOR);
    Ok(issuing.await?.token)
}

fn reports() -> Arc<Reports> {
    Arc::new(Reports::new(Arc::new(MemoryClickStore::new()), None))
}
