//! Following links that are not for everybody, or not at every moment: who gets where, and that nobody keeps a copy.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use curt_accounts::{CallerId, LimitSettings, Origin, UserEdit, UserRef};
use curt_core::ports::QuotaRule;
use curt_core::{Scope, Visibility};
use curt_http::{HttpSettings, PrivateDenied};
use curt_links::{Blocklist, EditLink, Expiry, LinkCreator, NewLink, Who};
use http::{Method, Request};

use crate::harness::{ADA, Answer, BOB, EVE, ROOT, World, account_settings};

const LINK_PASSWORD: &str = "open sesame";
const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Public,
    Private,
    Password,
    Limited,
    UsedUp,
    PrivateUsedUp,
    Blocked,
    Disabled,
    Absent,
    Expired,
}

#[derive(Clone, Copy, Debug)]
enum Visitor {
    AnonymousProgram,
    AnonymousBrowser,
    BadKey,
    OwnerKey,
    OwnerSession,
    OwnerWithoutRead,
    PermittedKey,
    PermittedSession,
    StrangerKey,
    StrangerSession,
    Admin,
}

use Visitor as V;

const EVERYBODY: [Visitor; 11] = [
    V::AnonymousProgram,
    V::AnonymousBrowser,
    V::BadKey,
    V::OwnerKey,
    V::OwnerSession,
    V::OwnerWithoutRead,
    V::PermittedKey,
    V::PermittedSession,
    V::StrangerKey,
    V::StrangerSession,
    V::Admin,
];

/// In the order of [`EVERYBODY`].
#[rustfmt::skip]
const TABLE: &[(Kind, [u16; 11])] = &[
    (Kind::Public,        [302; 11]),
    (Kind::Private,       [401, 303, 401, 302, 302, 403, 302, 302, 403, 403, 403]),
    (Kind::Password,      [401; 11]),
    (Kind::Limited,       [302; 11]),
    (Kind::UsedUp,        [429; 11]),
    // Whoever may not follow the link does not learn how busy it is.
    (Kind::PrivateUsedUp, [401, 303, 401, 429, 429, 403, 429, 429, 403, 403, 403]),
    (Kind::Blocked,       [410; 11]),
    (Kind::Disabled,      [410; 11]),
    (Kind::Absent,        [404; 11]),
    (Kind::Expired,       [410; 11]),
];

#[tokio::test]
async fn every_visitor_of_every_link_gets_what_the_table_says() {
    for (kind, statuses) in TABLE {
        let scene = Scene::of(*kind).await;
        for (visitor, status) in EVERYBODY.into_iter().zip(statuses) {
            for method in [Method::GET, Method::HEAD] {
                let answer = scene.ask(visitor, &method).await;
                let case = format!("{method} {kind:?} by {visitor:?}: {answer:?}");
                assert_eq!(answer.status.as_u16(), *status, "{case}");
                check(*kind, &answer, &case);
            }
        }
    }
}

/// Nobody keeps an answer, and a target does not learn of a link that was not for everybody.
fn check(kind: Kind, answer: &Answer, case: &str) {
    let redirects = answer.status.as_u16() == 302;
    let cache_control = if redirects {
        "private, no-store"
    } else {
        "no-store"
    };
    assert_eq!(answer.header("cache-control"), cache_control, "{case}");
    assert!(!answer.headers.contains_key("etag"), "{case}");
    if redirects {
        let is_secret = matches!(kind, Kind::Private | Kind::Password);
        let referrer = answer.header("referrer-policy");
        assert_eq!(referrer == "no-referrer", is_secret, "{case}");
        assert_eq!(answer.header("location"), "https://example.com/x", "{case}");
    } else {
        assert!(!answer.body.contains("example.com/x"), "{case}");
        assert!(!answer.header("location").contains("example.com"), "{case}");
    }
    if answer.status.as_u16() == 429 {
        for name in ["retry-after", "ratelimit", "ratelimit-policy"] {
            assert!(answer.headers.contains_key(name), "{case}");
        }
    }
    if answer.status.as_u16() == 303 {
        assert_eq!(answer.header("location"), "/sign-in?next=%2Fit", "{case}");
    }
}

struct Scene {
    world: World,
    sessions: [String; 3],
    keys: [String; 3],
    without_read: String,
    admin: String,
}

impl Scene {
    async fn of(kind: Kind) -> Self {
        let limits = LimitSettings {
            misses_per_address: None,
            ..LimitSettings::default()
        };
        let world = World::built(HttpSettings::default(), account_settings(), limits).await;
        let scene = Self {
            sessions: [
                world.session(ADA).await,
                world.session(BOB).await,
                world.session(EVE).await,
            ],
            keys: [
                world.key.clone(),
                world.stranger.clone(),
                world.key_for(EVE, "eve", &[Scope::Read]).await,
            ],
            without_read: world
                .key_for(ADA, "blind", &[Scope::Create, Scope::Manage])
                .await,
            admin: world.key_for(ROOT, "root", &Scope::ALL).await,
            world,
        };
        if kind != Kind::Absent {
            make(&scene.world, kind).await;
        }
        scene
    }

    async fn ask(&self, visitor: Visitor, method: &Method) -> Answer {
        let key = |key: &String| ("authorization", format!("Bearer {key}"));
        let session = |token: &String| ("cookie", format!("__Host-curt_session={token}"));
        let (shown, is_browser) = match visitor {
            V::AnonymousProgram => (None, false),
            V::AnonymousBrowser => (None, true),
            V::BadKey => (Some(key(&self.world.revoked)), false),
            V::OwnerKey => (Some(key(&self.keys[0])), false),
            V::OwnerSession => (Some(session(&self.sessions[0])), true),
            V::OwnerWithoutRead => (Some(key(&self.without_read)), false),
            V::PermittedKey => (Some(key(&self.keys[1])), false),
            V::PermittedSession => (Some(session(&self.sessions[1])), true),
            V::StrangerKey => (Some(key(&self.keys[2])), false),
            V::StrangerSession => (Some(session(&self.sessions[2])), true),
            V::Admin => (Some(key(&self.admin)), false),
        };
        let mut request = Request::builder().method(method).uri("/it");
        if is_browser {
            request = request.header("accept", HTML);
        }
        if let Some((name, value)) = shown {
            request = request.header(name, value);
        }
        self.world.send(request.body(Body::empty()).unwrap()).await
    }

    async fn status(&self, visitor: Visitor) -> u16 {
        self.ask(visitor, &Method::GET).await.status.as_u16()
    }
}

/// The link `it` of Ada's, which Bob may follow.
async fn make(world: &World, kind: Kind) {
    let visibility = match kind {
        Kind::Private | Kind::PrivateUsedUp => Visibility::Private,
        Kind::Password => Visibility::Password,
        _ => Visibility::Public,
    };
    let mut new = NewLink {
        target: "https://example.com/x".to_owned(),
        alias: Some("it".to_owned()),
        visibility: Some(visibility),
        ..NewLink::default()
    };
    if kind == Kind::Password {
        let passwords = &world.accounts.link_passwords;
        let hash = passwords.hash(CallerId::Operator, LINK_PASSWORD).await;
        new.password_hash = Some(hash.unwrap());
    }
    if kind == Kind::Expired {
        new.expires_at = Expiry::At(world.app.clock.now().plus(Duration::from_secs(60)));
    }
    let by = LinkCreator {
        owner: ADA,
        made_with: None,
    };
    let link = world.app.links.create(by, new, None).await.unwrap().link;
    let permissions = &world.accounts.permissions;
    let generation = link.revision.generation;
    let granting = permissions.grant(&link.id, generation, UserRef::Id(BOB), Origin::OPERATOR);
    granting.await.unwrap();
    match kind {
        Kind::Limited => allow(world, 1_000).await,
        Kind::UsedUp | Kind::PrivateUsedUp => {
            allow(world, 1).await;
            assert!(
                world
                    .accounts
                    .limits
                    .redirections(ADA, None)
                    .await
                    .unwrap()
                    .granted
            );
        }
        Kind::Blocked => assert!(
            world
                .app
                .policy
                .block(Blocklist::parse(b"example.com").unwrap())
        ),
        Kind::Disabled => drop(world.app.links.disable("it").await.unwrap()),
        Kind::Expired => world.clock.advance(Duration::from_secs(61)),
        Kind::Public | Kind::Private | Kind::Password | Kind::Absent => {}
    }
}

/// Lets all of Ada's links together be followed so often an hour.
async fn allow(world: &World, clicks: u64) {
    let rule = QuotaRule {
        amount: clicks,
        period: Duration::from_secs(3_600),
    };
    let edit = UserEdit {
        redirections: Some(Some(rule)),
        ..UserEdit::default()
    };
    let users = &world.accounts.users;
    let editing = users.edit(UserRef::Id(ADA), &edit, None, Origin::OPERATOR);
    editing.await.unwrap();
    let limited = world.accounts.read_limited().await.unwrap();
    world.app.policy.limit(limited);
}

#[tokio::test]
async fn whoever_waits_as_told_may_click_a_limited_link_again() {
    let scene = Scene::of(Kind::UsedUp).await;
    let refused = scene.ask(V::AnonymousProgram, &Method::GET).await;
    assert_eq!(refused.problem(), "rate-limited");
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    scene.world.clock.advance(Duration::from_secs(seconds));
    assert_eq!(scene.status(V::AnonymousProgram).await, 302);
    assert_eq!(scene.status(V::AnonymousProgram).await, 429);
}

/// A change counts at the next click, in both directions.
#[tokio::test]
async fn changed_permissions_and_visibilities_take_effect_at_once() {
    let scene = Scene::of(Kind::Private).await;
    let world = &scene.world;
    assert_eq!(scene.status(V::PermittedKey).await, 302);
    assert_eq!(scene.status(V::StrangerKey).await, 403);
    let link = world.app.links.get(Who::Owner(ADA), "it").await.unwrap();
    let generation = link.revision.generation;
    let permissions = &world.accounts.permissions;
    let held = permissions.list(&link.id, generation).await.unwrap();
    let revoking = permissions.revoke(&link.id, held[0].permission.id, Origin::OPERATOR);
    revoking.await.unwrap();
    assert_eq!(scene.status(V::PermittedKey).await, 403);
    let granting = permissions.grant(&link.id, generation, UserRef::Id(EVE), Origin::OPERATOR);
    granting.await.unwrap();
    assert_eq!(scene.status(V::StrangerKey).await, 302);
    for (visibility, stranger) in [
        (Visibility::Public, 302),
        (Visibility::Private, 401),
        (Visibility::Public, 302),
    ] {
        let edit = EditLink {
            visibility: Some(visibility),
            ..EditLink::default()
        };
        let editing = world.app.links.edit(Who::Owner(ADA), "it", None, edit);
        editing.await.unwrap();
        assert_eq!(scene.status(V::AnonymousProgram).await, stranger);
    }
}

#[tokio::test]
async fn a_hidden_private_link_is_to_strangers_as_if_it_were_not_there() {
    let mut settings = HttpSettings::default();
    settings.redirect.private_denied = PrivateDenied::Hidden;
    let world = World::with(settings).await;
    make(&world, Kind::Private).await;
    let eve = world.key_for(EVE, "eve", &[Scope::Read]).await;
    let ask = async |path: &str, accept: &str| {
        let request = Request::get(path)
            .header("x-api-key", &eve)
            .header("x-request-id", "same")
            .header("accept", accept)
            .body(Body::empty());
        let answer = world.send(request.unwrap()).await;
        (answer.status, answer.headers, answer.body)
    };
    for accept in ["*/*", HTML] {
        let hidden = ask("/it", accept).await;
        assert_eq!(hidden.0, 404);
        assert_eq!(hidden, ask("/nope", accept).await);
    }
    // Nor by how often it may be asked for.
    let mut answers = Vec::new();
    for _ in 0..40 {
        answers.push(ask("/it", "*/*").await.0.as_u16());
    }
    assert_eq!(answers.iter().filter(|status| **status == 404).count(), 11);
    assert_eq!(answers.last(), Some(&429));
}

async fn post(world: &World, path: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::post(path);
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        request = request.header("content-type", "application/x-www-form-urlencoded");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world
        .send(request.body(Body::from(body.to_owned())).unwrap())
        .await
}

#[tokio::test]
async fn a_password_is_asked_for_with_a_form_and_opens_the_link() {
    let world = World::new().await;
    make(&world, Kind::Password).await;
    let form = world.browse("/it").await;
    assert_eq!(form.status, 401);
    assert!(
        form.body.contains("method=\"post\" action=\"/it\""),
        "{}",
        form.body
    );
    assert!(form.body.contains("name=\"robots\" content=\"noindex\""));
    let policy = form.header("content-security-policy");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(
        !policy.contains("form-action"),
        "browsers would stop at the target: {policy}"
    );

    let opened = post(&world, "/it", "password=open+sesame", &[("accept", HTML)]).await;
    assert_eq!(opened.status, 303);
    assert_eq!(opened.header("location"), "https://example.com/x");
    assert_eq!(opened.header("cache-control"), "private, no-store");
    assert_eq!(opened.header("referrer-policy"), "no-referrer");

    let wrong = post(&world, "/it", "password=sesame", &[("accept", HTML)]).await;
    assert_eq!(wrong.status, 401);
    assert!(wrong.body.contains("id=\"password-error\"") && !wrong.body.contains("value=\"sesame"));
    let wrong = post(&world, "/it", "password=sesame", &[]).await;
    assert_eq!(wrong.problem(), "link-password-wrong");
}

/// A 307 would have the browser send the password on to the target.
#[tokio::test]
async fn the_password_is_never_sent_on() {
    let world = World::new().await;
    make(&world, Kind::Password).await;
    let edit = EditLink {
        status: Some(curt_core::RedirectStatus::TemporaryRedirect),
        forward_query: Some(true),
        ..EditLink::default()
    };
    let editing = world.app.links.edit(Who::Owner(ADA), "it", None, edit);
    editing.await.unwrap();
    let opened = post(&world, "/it?from=mail", "password=open+sesame", &[]).await;
    assert_eq!(opened.status, 303);
    assert_eq!(opened.header("location"), "https://example.com/x?from=mail");
}

#[tokio::test]
async fn a_password_counts_only_in_the_body_of_a_form_of_ours() {
    let world = World::new().await;
    make(&world, Kind::Password).await;
    let asked = world.browse("/it?password=open+sesame").await;
    assert_eq!(asked.status, 401);
    for (path, body, headers, status) in [
        ("/it?password=open+sesame", "", &[][..], 401),
        (
            "/it",
            "{\"password\":\"open sesame\"}",
            &[("content-type", "application/json")],
            415,
        ),
        (
            "/it",
            "password=open+sesame",
            &[("origin", "https://evil.example")],
            403,
        ),
        (
            "/it",
            "password=open+sesame",
            &[("sec-fetch-site", "cross-site")],
            403,
        ),
        (
            "/it",
            "password=open+sesame",
            &[("origin", "https://sho.rt")],
            303,
        ),
    ] {
        let answer = post(&world, path, body, headers).await;
        assert_eq!(answer.status.as_u16(), status, "{path} {body} {headers:?}");
    }
    let long = format!("password={}", "a".repeat(300));
    assert_eq!(post(&world, "/it", &long, &[]).await.status, 401);
    world.link("open").await;
    let answer = post(&world, "/open", "password=x", &[]).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("allow")),
        (405, "GET,HEAD")
    );
    assert_eq!(post(&world, "/nope", "password=x", &[]).await.status, 404);
}

#[tokio::test]
async fn guesses_at_a_password_are_limited_and_waiting_as_told_helps() {
    let world = World::new().await;
    make(&world, Kind::Password).await;
    for _ in 0..3 {
        assert_eq!(post(&world, "/it", "password=no", &[]).await.status, 401);
    }
    // Even the true one: else guessing could go on through the limit.
    let refused = post(&world, "/it", "password=open+sesame", &[]).await;
    assert_eq!(refused.problem(), "rate-limited");
    assert!(
        refused
            .header("ratelimit-policy")
            .contains("\"link-password\";q=3;w=60")
    );
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    world.clock.advance(Duration::from_secs(seconds));
    assert_eq!(
        post(&world, "/it", "password=open+sesame", &[])
            .await
            .status,
        303
    );
}

/// One request from an address of its own.
async fn from(world: &World, address: [u8; 4], path: &str) -> Answer {
    let mut request = Request::get(path).body(Body::empty()).unwrap();
    let peer = SocketAddr::new(IpAddr::from(address), 50_000);
    request.extensions_mut().insert(ConnectInfo(peer));
    world.send(request).await
}

#[tokio::test]
async fn whoever_tries_keys_hears_of_fifteen_misses_and_then_of_nothing() {
    let world = World::new().await;
    world.link("there").await;
    let (scanner, other) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    for miss in 0..15 {
        assert_eq!(
            from(&world, scanner, &format!("/miss{miss}")).await.status,
            404
        );
    }
    let unrecorded = &world.app.metrics.misses_unrecorded;
    assert_eq!(unrecorded.get(), 0);
    let refused = from(&world, scanner, "/miss30").await;
    assert_eq!(refused.problem(), "rate-limited");
    assert_eq!(unrecorded.get(), 1, "it is in no report");
    let live = from(&world, scanner, "/there").await;
    assert_eq!(live.body, refused.body, "a link looks like none");
    assert_eq!(unrecorded.get(), 2);
    assert_eq!(from(&world, other, "/there").await.status, 302);
    assert_eq!(from(&world, other, "/miss30").await.status, 404);
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    world.clock.advance(Duration::from_secs(seconds));
    assert_eq!(from(&world, scanner, "/there").await.status, 302);
    assert_eq!(from(&world, scanner, "/miss31").await.status, 404);
    assert_eq!(from(&world, scanner, "/miss32").await.status, 429);
}

/// What was there once is no guess.
#[tokio::test]
async fn links_that_are_gone_are_not_counted_as_misses() {
    let world = World::new().await;
    make(&world, Kind::Disabled).await;
    for _ in 0..40 {
        assert_eq!(from(&world, [192, 0, 2, 1], "/it").await.status, 410);
    }
    assert_eq!(from(&world, [192, 0, 2, 1], "/nope").await.status, 404);
}

#[tokio::test]
async fn every_answer_of_a_site_with_tls_says_so() {
    let world = World::new().await;
    make(&world, Kind::Private).await;
    world.link("open").await;
    for path in [
        "/open",
        "/it",
        "/nope",
        "/",
        "/sign-in",
        "/api/v1/links",
        "/health/live",
    ] {
        let answer = world.browse(path).await;
        let secure = answer.header("strict-transport-security");
        assert_eq!(secure, "max-age=31536000", "{path}");
    }
}
