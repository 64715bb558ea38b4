//! People and their sessions, by API.

use std::time::Duration;

use axum::body::Body;
use curt_accounts::{AccountSettings, DisabledLinks, LimitSettings, NewKey, Origin, SignUp};
use curt_core::names::audit;
use curt_core::ports::AuditEntry;
use curt_core::{Allowance, Scope, Scopes};
use curt_http::HttpSettings;
use futures_util::FutureExt as _;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::harness::{ADA, Answer, BASE, NOW, PASSWORD, ROOT, World, account_settings};

const DAN: &str = "dan@example.com";

fn dan() -> Value {
    json!({"first_name": "Dan", "last_name": "Doe", "email": "Dan@Example.com", "password": PASSWORD})
}

async fn world(sign_up: SignUp) -> World {
    let users = AccountSettings {
        sign_up,
        ..account_settings()
    };
    let limits = LimitSettings::default();
    let world = World::built(HttpSettings::default(), users, limits).await;
    // While nobody can sign in, the server waits to be set up.
    world.session(ROOT).await;
    world
}

/// A request without credentials.
async fn post(world: &World, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::post(path).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_string()));
    world.send(request.unwrap()).await
}

async fn by_key(
    world: &World,
    key: &str,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("x-api-key", key)
        .header("content-type", "application/json");
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    world.send(request.body(body).unwrap()).await
}

async fn by_cookie(world: &World, cookie: &str, method: Method, path: &str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("cookie", cookie)
        .header("origin", BASE);
    world.send(request.body(Body::empty()).unwrap()).await
}

async fn sign_in(world: &World, email: &str, password: &str, headers: &[(&str, &str)]) -> Answer {
    let body = json!({"email": email, "password": password});
    post(world, "/api/v1/sessions", &body, headers).await
}

/// The cookie as a browser would send it back.
fn cookie(answer: &Answer) -> String {
    let cookie = answer.header("set-cookie").split(';').next().unwrap();
    cookie.to_owned()
}

#[tokio::test]
async fn who_may_sign_up_is_a_setting() {
    for (setting, status) in [
        (SignUp::Closed, 403),
        (SignUp::Invite, 403),
        (SignUp::Open, 201),
    ] {
        let world = world(setting).await;
        let answer = post(&world, "/api/v1/users", &dan(), &[]).await;
        assert_eq!(answer.status.as_u16(), status, "{setting:?} {answer:?}");
    }
    let world = world(SignUp::Open).await;
    let made = post(&world, "/api/v1/users", &dan(), &[]).await;
    let user = made.json();
    let id = user["id"].as_str().unwrap();
    assert_eq!(made.header("location"), format!("/api/v1/users/{id}"));
    assert_eq!(user["email"], DAN);
    assert_eq!(user["role"], "member");
    assert!(!made.body.contains("password") && !made.body.contains("argon2"));
    assert_eq!(sign_in(&world, DAN, PASSWORD, &[]).await.status, 201);
    let again = post(&world, "/api/v1/users", &dan(), &[]).await;
    assert_eq!(again.problem(), "email-taken");
    let foreign = [("origin", "https://evil.example")];
    let foreign = post(&world, "/api/v1/users", &dan(), &foreign).await;
    assert_eq!(foreign.problem(), "cross-site");
}

#[tokio::test]
async fn an_invitation_lets_one_user_in() {
    let world = world(SignUp::Invite).await;
    let root = world.key_for(ROOT, "all", &Scope::ALL).await;
    let body = json!({"role": "admin", "ttl_seconds": 60});
    let invited = by_key(&world, &root, Method::POST, "/api/v1/invites", Some(body)).await;
    assert_eq!(invited.status, StatusCode::CREATED);
    let invited = invited.json();
    let code = invited["code"].as_str().unwrap();
    assert_eq!(
        invited["url"],
        format!("https://sho.rt/sign-up?invite={code}")
    );
    assert_eq!(invited["expires_at"], "2026-01-01T00:01:00.000Z");
    let mut with_code = dan();
    with_code["invite"] = json!(code);
    let made = post(&world, "/api/v1/users", &with_code, &[]).await;
    assert_eq!(made.json()["role"], "admin");
    with_code["email"] = json!("another@example.com");
    let again = post(&world, "/api/v1/users", &with_code, &[]).await;
    assert_eq!(again.problem(), "invite-invalid");
}

#[tokio::test]
async fn every_mistake_in_a_new_user_is_named() {
    let world = world(SignUp::Open).await;
    let body = json!({"first_name": "", "last_name": "\u{7}", "email": "x", "password": "short"});
    let answer = post(&world, "/api/v1/users", &body, &[]).await;
    let errors = answer.json();
    let errors = errors["errors"].as_array().unwrap();
    let fields: Vec<_> = errors.iter().map(|error| &error["field"]).collect();
    assert_eq!(fields, ["first_name", "last_name", "email", "password"]);
    for (field, value) in [
        ("unknown", json!(1)),
        ("role", json!("king")),
        ("email", json!(["a@b.c"])),
    ] {
        let mut body = dan();
        body[field] = value;
        let answer = post(&world, "/api/v1/users", &body, &[]).await;
        assert_eq!(answer.status, 422, "{field}");
        assert!(answer.refused().starts_with(field), "{}", answer.refused());
    }
}

#[tokio::test]
async fn a_session_begins_acts_and_ends() {
    let world = world(SignUp::Closed).await;
    world.session(ADA).await;
    let agent = [("user-agent", "Firefox/1.0 \u{1F98A}")];
    let signed_in = sign_in(&world, "ADA@example.com", PASSWORD, &agent).await;
    assert_eq!(signed_in.status, StatusCode::CREATED);
    let set = signed_in.header("set-cookie").to_owned();
    assert!(set.starts_with("__Host-curt_session=curts_"), "{set}");
    assert!(
        set.ends_with("; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax; Secure"),
        "{set}"
    );
    let cookie = cookie(&signed_in);
    let token = cookie.split_once('=').unwrap().1;
    assert!(!signed_in.body.contains(token), "scripts could read it");
    let body = signed_in.json();
    assert_eq!(body["user"]["email"], "ada@example.com");
    assert_eq!(body["session"]["current"], true);
    assert_eq!(body["session"]["agent"], "Firefox/1.0 \u{1F98A}");

    let sessions = by_cookie(&world, &cookie, Method::GET, "/api/v1/sessions").await;
    let sessions = sessions.json();
    let sessions = sessions["sessions"].as_array().unwrap();
    let current: Vec<_> = sessions.iter().map(|session| &session["current"]).collect();
    assert_eq!(sessions.len(), 2);
    assert!(current.contains(&&json!(true)) && current.contains(&&json!(false)));

    let path = "/api/v1/sessions/current";
    let out = by_cookie(&world, &cookie, Method::DELETE, path).await;
    assert_eq!(out.status, StatusCode::NO_CONTENT);
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    let after = by_cookie(&world, &cookie, Method::GET, "/api/v1/sessions").await;
    assert_eq!(after.problem(), "credentials-missing");
}

#[tokio::test]
async fn signing_in_replaces_the_session_that_came_along() {
    let world = world(SignUp::Closed).await;
    let planted = format!("__Host-curt_session={}", world.session(ADA).await);
    let headers = [("cookie", planted.as_str()), ("origin", BASE)];
    let signed_in = sign_in(&world, "ada@example.com", PASSWORD, &headers).await;
    assert_ne!(cookie(&signed_in), planted);
    let path = "/api/v1/users/me";
    let with_old = by_cookie(&world, &planted, Method::GET, path).await;
    assert_eq!(with_old.status, 401);
    let with_new = by_cookie(&world, &cookie(&signed_in), Method::GET, path).await;
    assert_eq!(with_new.status, 200);
}

#[tokio::test]
async fn guesses_are_limited_and_waiting_as_told_is_enough() {
    let world = world(SignUp::Closed).await;
    world.session(ADA).await;
    let mut refused = None;
    for _ in 0..6 {
        let answer = sign_in(&world, "ada@example.com", "a wrong guess", &[]).await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            refused = Some(answer);
            break;
        }
        assert_eq!(answer.problem(), "wrong-credentials");
    }
    let refused = refused.unwrap();
    assert_eq!(refused.problem(), "rate-limited");
    assert_eq!(refused.header("ratelimit-policy"), "\"sign-in\";q=5;w=60");
    assert!(
        refused
            .header("ratelimit")
            .starts_with("\"sign-in\";r=0;t=")
    );
    // The true password is not looked at either.
    let locked = sign_in(&world, "ada@example.com", PASSWORD, &[]).await;
    assert_eq!(locked.problem(), "rate-limited");
    // Whoever is signed in has a limit of their own, which nobody else can use up.
    let body = json!({"old_password": "a wrong guess", "new_password": "another good one"});
    let path = "/api/v1/users/me/password";
    for _ in 0..5 {
        let wrong = world.call(Method::POST, path, Some(body.clone())).await;
        assert_eq!(wrong.problem(), "wrong-credentials");
    }
    let other_door = world.call(Method::POST, path, Some(body)).await;
    assert_eq!(other_door.problem(), "rate-limited");
    let seconds = refused.header("retry-after").parse().unwrap();
    world.clock.advance(Duration::from_secs(seconds));
    let waited = sign_in(&world, "ada@example.com", PASSWORD, &[]).await;
    assert_eq!(waited.status, StatusCode::CREATED);
}

#[tokio::test]
async fn an_unknown_email_is_answered_like_a_wrong_password() {
    let world = world(SignUp::Closed).await;
    world.session(ADA).await;
    let unknown = sign_in(&world, "nobody@example.com", PASSWORD, &[]).await;
    let wrong = sign_in(&world, "ada@example.com", "a wrong guess", &[]).await;
    assert_eq!(unknown.problem(), "wrong-credentials");
    assert_eq!(unknown.body, wrong.body);
    let names = |answer: &Answer| answer.headers.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&unknown), names(&wrong));
}

#[tokio::test]
async fn a_changed_password_ends_the_other_sessions() {
    let world = world(SignUp::Closed).await;
    let [kept, ended] = [world.session(ADA).await, world.session(ADA).await]
        .map(|token| format!("__Host-curt_session={token}"));
    let body = json!({"old_password": PASSWORD, "new_password": "another good one"});
    let headers = [("cookie", kept.as_str()), ("origin", BASE)];
    let changed = post(&world, "/api/v1/users/me/password", &body, &headers).await;
    assert_eq!(changed.status, StatusCode::NO_CONTENT);
    for (cookie, status) in [(&kept, 200), (&ended, 401)] {
        let answer = by_cookie(&world, cookie, Method::GET, "/api/v1/users/me").await;
        assert_eq!(answer.status.as_u16(), status);
    }
    let old = sign_in(&world, "ada@example.com", PASSWORD, &[]).await;
    assert_eq!(old.problem(), "wrong-credentials");
    let new = sign_in(&world, "ada@example.com", "another good one", &[]).await;
    assert_eq!(new.status, StatusCode::CREATED);
    let short = json!({"old_password": "another good one", "new_password": "short"});
    let path = "/api/v1/users/me/password";
    let refused = world.call(Method::POST, path, Some(short)).await;
    assert_eq!(refused.refused(), "new_password/too_short");
}

#[tokio::test]
async fn a_password_change_goes_on_when_its_client_has_gone() {
    let world = world(SignUp::Closed).await;
    let [kept, ended] = [world.session(ADA).await, world.session(ADA).await]
        .map(|token| format!("__Host-curt_session={token}"));
    let changes = async || {
        let entries = world.accounts.audit.list(None, 200).await.unwrap();
        let changed = |entry: &AuditEntry| &*entry.action == audit::PASSWORD_CHANGED;
        entries.iter().filter(|(_, entry)| changed(entry)).count()
    };
    let before = changes().await;
    let body = json!({"old_password": PASSWORD, "new_password": "another good one"});
    let headers = [("cookie", kept.as_str()), ("origin", BASE)];
    let asking = post(&world, "/api/v1/users/me/password", &body, &headers);
    // The client hangs up while its old password is being looked at.
    assert!(asking.now_or_never().is_none());
    let waiting = async {
        while changes().await == before {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), waiting).await.unwrap();
    let answer = by_cookie(&world, &ended, Method::GET, "/api/v1/users/me").await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn a_new_password_ends_api_keys_when_asked_to() {
    for (asked, works) in [
        (json!(null), true),
        (json!(false), true),
        (json!(true), false),
    ] {
        let world = world(SignUp::Closed).await;
        world.session(ADA).await;
        let made = world
            .call(Method::POST, "/api/v1/keys", Some(json!({"name": "child"})))
            .await;
        let child = made.json()["token"].as_str().unwrap().to_owned();
        let root = world.key_for(ROOT, "all", &Scope::ALL).await;
        let mut body = json!({"new_password": "another good one"});
        if !asked.is_null() {
            body["revoke_api_keys"] = asked.clone();
        }
        let path = "/api/v1/users/1/password";
        let set = by_key(&world, &root, Method::POST, path, Some(body)).await;
        assert_eq!(set.status, StatusCode::NO_CONTENT);
        for (key, works) in [(&world.key, works), (&child, works), (&root, true)] {
            let answer = by_key(&world, key, Method::GET, "/api/v1/links", None).await;
            assert_eq!(answer.status == 200, works, "{asked}");
        }
    }
}

#[tokio::test]
async fn the_links_of_a_disabled_user_follow_the_setting() {
    for (setting, status) in [(DisabledLinks::Serve, 302), (DisabledLinks::Gone, 410)] {
        let users = AccountSettings {
            disabled_links: setting,
            ..account_settings()
        };
        let limits = LimitSettings::default();
        let world = World::built(HttpSettings::default(), users, limits).await;
        world.link("mine").await;
        assert_eq!(world.browse("/mine").await.status, 302);
        let root = world.key_for(ROOT, "all", &Scope::ALL).await;
        let switch = async |disabled: bool| {
            let path = "/api/v1/users/1";
            let body = Some(json!({ "disabled": disabled }));
            by_key(&world, &root, Method::PATCH, path, body).await
        };
        assert_eq!(switch(true).await.status, 200);
        assert_eq!(world.browse("/mine").await.status.as_u16(), status);
        assert_eq!(switch(false).await.status, 200);
        assert_eq!(world.browse("/mine").await.status, 302);
    }
}

#[tokio::test]
async fn an_invitation_ends_with_the_key_that_made_it() {
    let world = world(SignUp::Invite).await;
    let expiring = NewKey {
        user: ROOT,
        name: "short".to_owned(),
        scopes: Scopes::ALL,
        allowance: Allowance::default(),
        expires_at: Some(NOW.plus(Duration::from_secs(3_600))),
    };
    let keys = &world.accounts.api_keys;
    let key = keys.issue(expiring, Scopes::ALL, Origin::OPERATOR).await;
    let key = key.unwrap().token;
    let path = "/api/v1/invites";
    let invited = by_key(&world, &key, Method::POST, path, Some(json!({}))).await;
    assert_eq!(invited.json()["expires_at"], "2026-01-01T01:00:00.000Z");
}

/// Anybody on the way of a plain request, or on a neighbour host, can plant a cookie without the prefix.
#[tokio::test]
async fn by_tls_only_the_cookie_that_nobody_else_can_plant_counts() {
    let world = world(SignUp::Closed).await;
    let token = world.session(ADA).await;
    for (name, status) in [("__Host-curt_session", 200), ("curt_session", 401)] {
        let cookie = format!("{name}={token}");
        let me = by_cookie(&world, &cookie, Method::GET, "/api/v1/users/me").await;
        assert_eq!(me.status.as_u16(), status, "{name}");
    }
}

#[tokio::test]
async fn a_cookie_changes_nothing_unless_one_of_our_pages_sent_it() {
    let world = world(SignUp::Closed).await;
    let cookie = format!("__Host-curt_session={}", world.session(ADA).await);
    let body = json!({"name": "n"});
    for (site, status) in [
        (None, 403),
        (Some(("origin", "null")), 403),
        (Some(("origin", "http://sho.rt")), 403),
        (Some(("sec-fetch-site", "same-site")), 403),
        (Some(("sec-fetch-site", "same-origin")), 201),
    ] {
        let headers: Vec<_> = [("cookie", cookie.as_str())]
            .into_iter()
            .chain(site)
            .collect();
        let answer = post(&world, "/api/v1/keys", &body, &headers).await;
        assert_eq!(answer.status.as_u16(), status, "{site:?}");
    }
}

#[tokio::test]
async fn administrators_change_what_others_may_and_keep_them_out() {
    let world = world(SignUp::Closed).await;
    let root = world.key_for(ROOT, "all", &Scope::ALL).await;
    let patch = async |body: Value| {
        let path = "/api/v1/users/1";
        by_key(&world, &root, Method::PATCH, path, Some(body)).await
    };
    let rate = json!({"amount": 1, "period_seconds": 3600});
    let changed = patch(json!({"creations": rate, "middle_name": "King"})).await;
    assert_eq!(changed.json()["creations"], rate);
    assert_eq!(changed.json()["middle_name"], "King");
    world.link("first").await;
    let body = json!({"target": "https://example.com/"});
    let refused = world.call(Method::POST, "/api/v1/links", Some(body)).await;
    assert_eq!(refused.problem(), "rate-limited");
    let cleared = patch(json!({"creations": null, "middle_name": null})).await;
    assert_eq!(cleared.json()["creations"], Value::Null);
    assert_eq!(cleared.json()["middle_name"], Value::Null);
    for (field, value) in [
        (
            "creations.period_seconds",
            json!({"creations": {"amount": 1, "period_seconds": 0}}),
        ),
        ("creations", json!({"creations": [1, 60]})),
        (
            "redirections.amount",
            json!({"redirections": {"amount": 1_000_000_001, "period_seconds": 1}}),
        ),
        ("first_name", json!({"first_name": null})),
        ("disabled", json!({"disabled": null})),
    ] {
        let answer = patch(value).await;
        assert!(
            answer.refused().starts_with(&format!("{field}/")),
            "{answer:?}"
        );
    }

    assert_eq!(patch(json!({"disabled": true})).await.status, 200);
    let kept_out = world.call(Method::GET, "/api/v1/users/me", None).await;
    assert_eq!(kept_out.problem(), "credentials-invalid");
    let back = patch(json!({"disabled": false})).await;
    assert_eq!(back.json()["disabled_at"], Value::Null);
    let back = world.call(Method::GET, "/api/v1/users/me", None).await;
    assert_eq!(back.status, 200);
}

#[tokio::test]
async fn a_limit_on_clicks_counts_at_once() {
    let world = world(SignUp::Closed).await;
    world.link("mine").await;
    let follow = async || world.browse("/mine").await.status.as_u16();
    assert_eq!(follow().await, 302);
    let root = world.key_for(ROOT, "all", &Scope::ALL).await;
    let patch = async |rate: Value| {
        let body = Some(json!({"redirections": rate}));
        by_key(&world, &root, Method::PATCH, "/api/v1/users/1", body).await
    };
    let limited = patch(json!({"amount": 2, "period_seconds": 60})).await;
    assert_eq!(limited.status, 200);
    let clicks = [follow().await, follow().await, follow().await];
    assert_eq!(clicks, [302, 302, 429]);
    assert_eq!(patch(Value::Null).await.status, 200);
    assert_eq!(follow().await, 302);
}

#[tokio::test]
async fn lists_of_users_and_of_the_log_page_through() {
    let world = world(SignUp::Closed).await;
    let root = world.key_for(ROOT, "all", &Scope::ALL).await;
    let get = async |path: String| by_key(&world, &root, Method::GET, &path, None).await;
    let mut emails = Vec::new();
    let mut path = "/api/v1/users?limit=3".to_owned();
    loop {
        let page = get(path).await.json();
        let users = page["users"].as_array().unwrap().clone();
        emails.extend(users.iter().map(|user| user["email"].clone()));
        match page["next"].as_str() {
            Some(next) => path = format!("/api/v1/users?limit=3&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(emails.len(), 4);
    let first = get("/api/v1/audit?limit=1".to_owned()).await.json();
    assert_eq!(first["entries"][0]["action"], "api_key_added");
    let next = first["next"].as_str().unwrap();
    let second = get(format!("/api/v1/audit?limit=1&cursor={next}")).await;
    let second = second.json();
    assert_eq!(second["entries"][0]["action"], "signed_in");
    assert_eq!(second["entries"][0]["subject"], "root@example.com");
    for path in [
        "users?limit=0",
        "users?cursor=x",
        "audit?cursor=-1",
        "audit?x=1",
    ] {
        let answer = get(format!("/api/v1/{path}")).await;
        assert_eq!(answer.problem(), "invalid-input", "{path}");
    }
}
