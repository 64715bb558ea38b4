//! A whole app in memory, and requests to it without a socket.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use curt_accounts::{
    AccountServices, AccountSettings, LimitSettings, NewKey, Origin, PasswordSettings, SignIn,
    UserRef,
};
use curt_clicks::classify::{CurrentReference, ReferenceData};
use curt_clicks::erase::ClickEraser;
use curt_clicks::report::Reports;
use curt_core::clock::ManualClock;
use curt_core::ports::{ChangeReply, LinkStore, Users};
use curt_core::{
    Allowance, Alphabet, Clock, ErrorKind, OwnerId, PortError, PortResult, Role, Scope, Scopes,
    UnixMillis, User,
};
use curt_http::{
    App, BodyBudget, HttpMetrics, HttpSettings, PrivateDenied, PublicUrl, Readiness, Scans, admin,
    api,
};
use curt_links::{
    LinkMetrics, LinkPolicy, LinkSettings, Links, ResolveMetrics, Resolver, ResolverSettings,
};
use curt_memory::{MemoryAccounts, MemoryClickStore, MemoryLinkStore, MemoryQuotas};
use curt_testkit::intercept::{Call, InterceptedLinks, Interceptor};
use curt_testkit::keys::random_supply;
use curt_testkit::sample;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::sync::watch;
use tower::ServiceExt;

pub(crate) const BASE: &str = "https://sho.rt";
/// 2026-01-01T00:00:00Z.
pub(crate) const NOW: UnixMillis = UnixMillis(1_767_225_600_000);

pub(crate) struct World {
    pub(crate) app: Arc<App>,
    pub(crate) router: Router,
    pub(crate) admin: Router,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ready: Arc<Readiness>,
    pub(crate) store: Arc<InterceptedLinks<Outage>>,
    /// What reports are read from; a test puts in what they are to tell.
    pub(crate) clicks: Arc<MemoryClickStore>,
    pub(crate) accounts: AccountServices,
    /// The key of the owner that most tests act for.
    pub(crate) key: String,
    /// A valid key of another owner.
    pub(crate) stranger: String,
    /// A key that was valid until it was revoked.
    pub(crate) revoked: String,
}

/// Members, and the last one an administrator. Nobody has a password before [`World::session`] gives them one.
pub(crate) const ADA: OwnerId = OwnerId(1);
pub(crate) const BOB: OwnerId = OwnerId(2);
pub(crate) const EVE: OwnerId = OwnerId(3);
pub(crate) const ROOT: OwnerId = OwnerId(4);

/// The password of whoever has a session.
pub(crate) const PASSWORD: &str = "correct horse battery";

/// Hashes that are cheap enough for tests.
pub(crate) fn account_settings() -> AccountSettings {
    AccountSettings {
        passwords: PasswordSettings {
            memory_kib: 8,
            passes: 1,
            hashers: 2,
            link_hashers: 1,
        },
        ..AccountSettings::default()
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(HttpSettings::default()).await
    }

    pub(crate) async fn with(settings: HttpSettings) -> Self {
        Self::built(settings, account_settings(), LimitSettings::default()).await
    }

    pub(crate) async fn built(
        settings: HttpSettings,
        users: AccountSettings,
        limits: LimitSettings,
    ) -> Self {
        let clicks = Arc::new(MemoryClickStore::new());
        let reports = Arc::new(Reports::new(clicks.clone(), None));
        Self::reporting(settings, users, limits, clicks, Some(reports)).await
    }

    /// A server that counts nothing.
    pub(crate) async fn without_reports() -> Self {
        Self::usual(Arc::default(), None).await
    }

    /// A server that keeps no single clicks.
    pub(crate) async fn without_clicks() -> Self {
        let clicks = Arc::new(MemoryClickStore::new());
        let reports = Reports::new(clicks.clone(), Some(Duration::ZERO));
        Self::usual(clicks, Some(Arc::new(reports))).await
    }

    async fn usual(clicks: Arc<MemoryClickStore>, reports: Option<Arc<Reports>>) -> Self {
        let (settings, limits) = (HttpSettings::default(), LimitSettings::default());
        Self::reporting(settings, account_settings(), limits, clicks, reports).await
    }

    async fn reporting(
        mut settings: HttpSettings,
        users: AccountSettings,
        limits: LimitSettings,
        clicks: Arc<MemoryClickStore>,
        reports: Option<Arc<Reports>>,
    ) -> Self {
        settings.api.public_url = Some(BASE.to_owned());
        settings.server.body_timeout = Duration::from_millis(50);
        let clock = Arc::new(ManualClock::at(NOW));
        let shared: Arc<dyn Clock> = clock.clone();
        let mut registry = Registry::default();
        let metrics = HttpMetrics::register(&mut registry);
        let store = InterceptedLinks::new(Arc::new(MemoryLinkStore::new()), Outage::default());
        let policy = Arc::new(LinkPolicy::default());
        let resolver = Resolver::new(
            ResolverSettings {
                hides_private: settings.redirect.private_denied == PrivateDenied::Hidden,
                ..ResolverSettings::default()
            },
            store.clone(),
            Arc::clone(&policy),
            Arc::clone(&shared),
            ResolveMetrics::default(),
        );
        let links = links(&store, &policy, &resolver, &shared);
        let accounts = Arc::new(MemoryAccounts::new());
        let quotas = Arc::new(MemoryQuotas::new(Arc::clone(&shared)));
        let services =
            AccountServices::new(users, limits, accounts.clone(), quotas, Arc::clone(&shared));
        let services = services.unwrap();
        let [key, stranger, revoked] = add_people(&accounts, &services).await;
        let ready = Readiness::new();
        let app = Arc::new(App {
            access_log: None,
            system: OnceLock::new(),
            clicks: None,
            click_reference: CurrentReference::fixed(ReferenceData::default()),
            click_eraser: reports
                .is_some()
                .then(|| Arc::new(ClickEraser::new(clicks.clone()))),
            reports,
            links,
            resolver,
            policy,
            accounts: services.clone(),
            clock: shared,
            public: PublicUrl::new(settings.api.public_url.as_deref()),
            scans: Scans::new(settings.scans),
            bodies: BodyBudget::new(&settings.server, metrics.clone()),
            settings,
            metrics,
            ready: Arc::clone(&ready),
        });
        Self {
            router: api::router(Arc::clone(&app)),
            admin: admin::router(Arc::clone(&app), Arc::new(registry)),
            app,
            clock,
            ready,
            store,
            clicks,
            accounts: services,
            key,
            stranger,
            revoked,
        }
    }

    pub(crate) async fn anonymous() -> Self {
        let mut settings = HttpSettings::default();
        settings.api.anonymous_create = true;
        Self::with(settings).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        answer(self.router.clone(), request).await
    }

    /// A request with the good key and, if there is one, a JSON body.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let body = body.map(|body| body.to_string());
        self.call_raw(method, path, &[], body.as_deref()).await
    }

    /// A request with the good key, more headers, and a JSON body as it stands.
    pub(crate) async fn call_raw(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("x-api-key", &self.key);
        if body.is_some() && !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_owned()));
        self.send(request.body(body).unwrap()).await
    }

    /// A new API key of somebody, for those scopes alone.
    pub(crate) async fn key_for(&self, user: OwnerId, name: &str, scopes: &[Scope]) -> String {
        let key = key_of(user, name, scopes);
        let issuing = self
            .accounts
            .api_keys
            .issue(key, Scopes::ALL, Origin::OPERATOR);
        issuing.await.unwrap().token
    }

    /// Signs somebody in, with [`PASSWORD`] if they have none yet; returns the token that the cookie holds.
    pub(crate) async fn session(&self, user: OwnerId) -> String {
        let users = &self.accounts.users;
        let whom = UserRef::Id(user);
        let user = users.get(whom).await.unwrap();
        if user.password_hash.is_none() {
            let set = users.set_password(whom, PASSWORD, Origin::OPERATOR);
            set.await.unwrap();
        }
        let shown = SignIn {
            email: &user.email,
            password: PASSWORD,
            agent: "Test/1.0",
            replaces: None,
        };
        let signed_in = users.sign_in(shown, Origin::OPERATOR).await;
        signed_in.unwrap().token
    }

    /// Makes a link with that alias.
    pub(crate) async fn link(&self, alias: &str) -> Answer {
        let body = serde_json::json!({"target": "https://example.com/x", "alias": alias});
        let made = self.call(Method::POST, "/api/v1/links", Some(body)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        made
    }

    /// Turns the link into a tombstone, as the purge does.
    pub(crate) async fn purge(&self, alias: &str) {
        let id = sample::id(alias);
        let link = self.store.get(&id).await.unwrap().unwrap();
        let now = self.clock.now();
        let reply = self.store.delete_at(&id, link.revision, now).await.unwrap();
        let ChangeReply::Changed(change) = reply else {
            panic!("{alias}: {reply:?}");
        };
        self.app.resolver.invalidate(&[change]);
    }

    /// What a browser gets.
    pub(crate) async fn browse(&self, path: &str) -> Answer {
        let request = Request::get(path)
            .header("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
            .body(Body::empty());
        self.send(request.unwrap()).await
    }
}

/// Adds the users, and returns the keys of the first three, of which the last is revoked.
async fn add_people(accounts: &MemoryAccounts, services: &AccountServices) -> [String; 3] {
    let api_keys = &services.api_keys;
    let mut keys = Vec::new();
    for (id, name) in [(ADA, "ada"), (BOB, "bob"), (EVE, "eve")] {
        let user = sample::user(id.0, &format!("{name}@example.com"));
        assert!(accounts.add_user(&user).await.unwrap());
        let key = key_of(user.id, "test", &MEMBER_SCOPES);
        let issued = api_keys.issue(key, Scopes::ALL, Origin::OPERATOR);
        keys.push(issued.await.unwrap());
    }
    let root = User {
        role: Role::Admin,
        ..sample::user(ROOT.0, "root@example.com")
    };
    assert!(accounts.add_user(&root).await.unwrap());
    let revoking = api_keys.revoke(&keys[2].key.prefix, None, Scopes::ALL, Origin::OPERATOR);
    revoking.await.unwrap();
    let tokens: Vec<_> = keys.into_iter().map(|issued| issued.token).collect();
    tokens.try_into().unwrap()
}

fn links(
    store: &Arc<InterceptedLinks<Outage>>,
    policy: &Arc<LinkPolicy>,
    resolver: &Arc<Resolver>,
    clock: &Arc<dyn Clock>,
) -> Arc<Links> {
    let settings = LinkSettings {
        own_hosts: vec!["sho.rt".parse().unwrap()],
        ..LinkSettings::default()
    };
    Links::new(
        settings,
        store.clone().into(),
        random_supply(Alphabet::Base62, 7),
        Arc::clone(policy),
        Arc::clone(resolver),
        Arc::clone(clock),
        LinkMetrics::default(),
    )
}

const MEMBER_SCOPES: [Scope; 3] = [Scope::Read, Scope::Create, Scope::Manage];

fn key_of(user: OwnerId, name: &str, scopes: &[Scope]) -> NewKey {
    NewKey {
        user,
        name: name.to_owned(),
        scopes: scopes.iter().copied().collect(),
        allowance: Allowance::default(),
        expires_at: None,
    }
}

pub(crate) async fn answer(router: Router, request: Request<Body>) -> Answer {
    let response = router.oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: parts.status,
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(|value| value.to_str().unwrap());
        value.unwrap_or("")
    }

    /// The code of a problem document, after checking that it is one.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json");
        let body = self.json();
        let code = body["code"].as_str().unwrap_or_default().to_owned();
        assert_eq!(body["status"], self.status.as_u16());
        assert_eq!(body["type"], format!("/problems/{code}"));
        assert!(body["title"].is_string() && body["detail"].is_string());
        assert_eq!(self.header("cache-control"), "no-store");
        assert_eq!(self.header("x-content-type-options"), "nosniff");
        code
    }

    /// `field/code` of the first refused field.
    pub(crate) fn refused(&self) -> String {
        let error = &self.json()["errors"][0];
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        format!("{}/{}", text("field"), text("code"))
    }
}

/// A store that can be taken away.
#[derive(Default)]
pub(crate) struct Outage {
    out: AtomicBool,
    panics: AtomicBool,
    lists_held: watch::Sender<bool>,
    gets: AtomicUsize,
}

impl Outage {
    pub(crate) fn set(&self, out: bool) {
        self.out.store(out, Ordering::SeqCst);
    }

    /// Whether lists wait for their rows until they are let go.
    pub(crate) fn hold_lists(&self, held: bool) {
        self.lists_held.send_replace(held);
    }

    /// Returns how often one link was asked for since the last call, answered or not.
    pub(crate) fn take_gets(&self) -> usize {
        self.gets.swap(0, Ordering::SeqCst)
    }

    pub(crate) fn panics(&self, panics: bool) {
        self.panics.store(panics, Ordering::SeqCst);
    }
}

#[async_trait]
impl Interceptor for Outage {
    async fn before(&self, call: Call) -> PortResult<()> {
        if call == Call::Get {
            self.gets.fetch_add(1, Ordering::SeqCst);
        }
        if call == Call::List {
            let mut held = self.lists_held.subscribe();
            held.wait_for(|held| !held).await.unwrap();
        }
        assert!(!self.panics.load(Ordering::SeqCst), "as the test asked");
        if self.out.load(Ordering::SeqCst) {
            let secret = "the disk of host db-17 is full";
            let kind = ErrorKind::Unavailable;
            return Err(PortError::new(kind, "memory", "answer", secret));
        }
        Ok(())
    }
}
