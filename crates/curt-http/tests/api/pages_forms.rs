//! Forms that let people in: signing in, signing up, setting up, and what a page of another site can do with them.

use std::time::Duration;

use axum::body::Body;
use curt_accounts::{AccountSettings, LimitSettings, Origin, SignUp, UserRef};
use curt_core::{OwnerId, Role};
use curt_http::HttpSettings;
use http::Request;

use crate::harness::{ADA, Answer, PASSWORD, World, account_settings};

pub(crate) const COOKIE: &str = "__Host-curt_session";
const OWN: &[(&str, &str)] = &[("origin", "https://sho.rt")];

/// Sends a form as a browser does.
pub(crate) async fn submit(
    world: &World,
    path: &str,
    fields: &[(&str, &str)],
    headers: &[(&str, &str)],
) -> Answer {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    let mut request = Request::post(path)
        .header("accept", "text/html")
        .header("user-agent", "Browser/1")
        .header("content-type", "application/x-www-form-urlencoded");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world.send(request.body(Body::from(body)).unwrap()).await
}

/// What a browser with a session gets.
pub(crate) async fn click(world: &World, path: &str, token: &str) -> Answer {
    let request = Request::get(path)
        .header("accept", "text/html")
        .header("cookie", format!("{COOKIE}={token}"))
        .body(Body::empty());
    world.send(request.unwrap()).await
}

/// The token in `Set-Cookie`, after checking that the cookie is as hard as it can be.
fn cookie_of(answer: &Answer) -> String {
    let cookie = answer.header("set-cookie");
    for part in ["Path=/", "HttpOnly", "SameSite=Lax", "Secure"] {
        assert!(cookie.split("; ").any(|given| given == part), "{cookie}");
    }
    let value = cookie.split(';').next().unwrap();
    let token = value.strip_prefix(&format!("{COOKIE}=")).unwrap();
    token.to_owned()
}

async fn is_let_in(world: &World, token: &str) -> bool {
    click(world, "/account", token).await.status == 200
}

async fn with_sign_up(sign_up: SignUp) -> World {
    let users = AccountSettings {
        sign_up,
        ..account_settings()
    };
    let limits = LimitSettings::default();
    World::built(HttpSettings::default(), users, limits).await
}

async fn give_password(world: &World, user: OwnerId) {
    let users = &world.accounts.users;
    let setting = users.set_password(UserRef::Id(user), PASSWORD, Origin::OPERATOR);
    setting.await.unwrap();
}

fn credentials<'a>(email: &'a str, password: &'a str) -> [(&'a str, &'a str); 2] {
    [("email", email), ("password", password)]
}

#[tokio::test]
async fn signing_in_begins_a_session_and_signing_out_ends_it() {
    let world = World::new().await;
    give_password(&world, ADA).await;
    let home = world.browse("/").await;
    assert!(home.body.contains("href=\"/sign-in\""));
    let shown = world.browse("/sign-in").await;
    assert_eq!(shown.status, 200);
    assert!(shown.body.contains("name=\"password\" type=\"password\""));
    assert_eq!(shown.header("cache-control"), "no-store");

    let form = credentials(" ADA@example.com ", PASSWORD);
    let signed_in = submit(&world, "/sign-in", &form, OWN).await;
    assert_eq!(signed_in.status, 303, "{}", signed_in.body);
    assert_eq!(signed_in.header("location"), "/");
    let token = cookie_of(&signed_in);
    let home = click(&world, "/", &token).await;
    assert!(home.body.contains("Ann Example") && home.body.contains("action=\"/sign-out\""));
    assert!(!home.body.contains("api_key") && !home.body.contains("href=\"/sign-in\""));
    assert_eq!(home.header("cache-control"), "no-store");
    assert!(
        !home.body.contains(&token),
        "the page must not tell the token"
    );

    let cookie = format!("{COOKIE}={token}");
    let csrf = csrf_in(&home);
    let headers = [("origin", "https://sho.rt"), ("cookie", cookie.as_str())];
    let out = submit(&world, "/sign-out", &[("csrf", &csrf)], &headers).await;
    assert_eq!((out.status.as_u16(), out.header("location")), (303, "/"));
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    assert!(!is_let_in(&world, &token).await);
}

/// The hidden field that proves that a page was made for a session.
pub(crate) fn csrf_in(page: &Answer) -> String {
    let field = page.body.split("name=\"csrf\" value=\"").nth(1).unwrap();
    field.split('"').next().unwrap().to_owned()
}

/// H11: nobody learns who has an account.
#[tokio::test]
async fn an_unknown_email_and_a_wrong_password_are_one_answer() {
    let world = World::new().await;
    give_password(&world, ADA).await;
    let mut bodies = Vec::new();
    for email in ["ada@example.com", "bob@example.com", "zoe@example.com"] {
        let refused = submit(&world, "/sign-in", &credentials(email, "wrong one"), OWN).await;
        assert_eq!(refused.status, 401);
        assert!(refused.body.contains("role=\"alert\"") && !refused.body.contains("wrong one"));
        assert!(refused.body.contains(&format!("value=\"{email}\"")));
        assert!(!refused.headers.contains_key("set-cookie"));
        bodies.push(refused.body.replace(email, "EMAIL"));
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]));
}

/// H12: a cookie that somebody planted before is not the one that counts after.
#[tokio::test]
async fn a_session_from_before_is_not_the_one_after_signing_in() {
    let world = World::new().await;
    let planted = world.session(crate::harness::EVE).await;
    give_password(&world, ADA).await;
    let cookie = format!("{COOKIE}={planted}");
    let headers = [("origin", "https://sho.rt"), ("cookie", cookie.as_str())];
    let form = credentials("ada@example.com", PASSWORD);
    let signed_in = submit(&world, "/sign-in", &form, &headers).await;
    let token = cookie_of(&signed_in);
    assert_ne!(token, planted);
    assert!(is_let_in(&world, &token).await);
    assert!(!is_let_in(&world, &planted).await);
}

#[tokio::test]
async fn tries_to_sign_in_are_limited_and_waiting_as_told_helps() {
    let world = World::new().await;
    give_password(&world, ADA).await;
    for _ in 0..5 {
        let wrong = credentials("ada@example.com", "wrong one");
        assert_eq!(submit(&world, "/sign-in", &wrong, OWN).await.status, 401);
    }
    let right = credentials("ada@example.com", PASSWORD);
    let refused = submit(&world, "/sign-in", &right, OWN).await;
    assert_eq!(refused.status, 429);
    assert!(refused.header("content-type").starts_with("text/html"));
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    world.clock.advance(Duration::from_secs(seconds));
    assert_eq!(submit(&world, "/sign-in", &right, OWN).await.status, 303);
}

/// H1: nobody is sent to another site by a link to ours.
#[tokio::test]
async fn after_signing_in_nobody_leaves_the_site() {
    let world = World::new().await;
    give_password(&world, ADA).await;
    for (next, place) in [
        ("/account?x=1", "/account?x=1"),
        ("/api", "/api"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("evil.example", "/"),
    ] {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("next", next)
            .finish();
        let shown = world.browse(&format!("/sign-in?{query}")).await;
        let is_kept = shown.body.contains("name=\"next\"");
        assert_eq!(is_kept, place != "/", "{next:?}");
        let [email, password] = credentials("ada@example.com", PASSWORD);
        let form = [email, password, ("next", next)];
        let answer = submit(&world, "/sign-in", &form, OWN).await;
        assert_eq!(answer.header("location"), place, "{next:?}");
    }
}

/// Anybody could send somebody to the page to sign in with a link of their own behind it.
#[tokio::test]
async fn after_signing_in_only_links_that_ask_for_it_are_followed() {
    let world = World::new().await;
    give_password(&world, ADA).await;
    world.link("open").await;
    let private = serde_json::json!({
        "target": "https://example.com/x", "alias": "hidden", "visibility": "private",
    });
    world
        .call(http::Method::POST, "/api/v1/links", Some(private))
        .await;
    for (next, place) in [
        ("/hidden", "/hidden"),
        ("/hidden?x=1", "/hidden?x=1"),
        ("/open", "/"),
        ("/open/", "/"),
        ("/open?x=1", "/"),
        ("/%6fpen", "/"),
        ("/nothing", "/"),
    ] {
        let [email, password] = credentials("ada@example.com", PASSWORD);
        let form = [email, password, ("next", next)];
        let answer = submit(&world, "/sign-in", &form, OWN).await;
        assert_eq!(answer.header("location"), place, "{next:?}");
    }
}

#[tokio::test]
async fn a_private_link_is_reached_by_signing_in() {
    let world = World::new().await;
    give_password(&world, ADA).await;
    let made = world
        .call(
            http::Method::POST,
            "/api/v1/links",
            Some(serde_json::json!({"target": "https://example.com/x", "alias": "mine", "visibility": "private"})),
        )
        .await;
    assert_eq!(made.status, 201, "{}", made.body);
    let asked = world.browse("/mine").await;
    let page = world.browse(asked.header("location")).await;
    let policy = page.header("content-security-policy");
    assert!(
        !policy.contains("form-action"),
        "browsers would stop at the target: {policy}"
    );
    let next = page.body.split("name=\"next\" value=\"").nth(1).unwrap();
    let next = next.split('"').next().unwrap();
    let [email, password] = credentials("ada@example.com", PASSWORD);
    let signed_in = submit(&world, "/sign-in", &[email, password, ("next", next)], OWN).await;
    assert_eq!(signed_in.header("location"), "/mine");
    let followed = click(&world, "/mine", &cookie_of(&signed_in)).await;
    assert_eq!(followed.header("location"), "https://example.com/x");
}

fn person(email: &str) -> [(&str, &str); 5] {
    [
        ("first_name", "Zoë"),
        ("middle_name", ""),
        ("last_name", "Example"),
        ("email", email),
        ("password", "a good password"),
    ]
}

#[tokio::test]
async fn signing_up_is_for_those_whom_the_setting_lets() {
    let closed = with_sign_up(SignUp::Closed).await;
    assert_eq!(closed.browse("/sign-up").await.status, 403);
    let refused = submit(&closed, "/sign-up", &person("zoe@example.com"), OWN).await;
    assert_eq!(refused.status, 403);
    assert!(!closed.browse("/sign-in").await.body.contains("/sign-up"));

    let open = with_sign_up(SignUp::Open).await;
    give_password(&open, ADA).await;
    assert!(open.browse("/sign-in").await.body.contains("/sign-up"));
    assert!(
        !open
            .browse("/sign-up")
            .await
            .body
            .contains("name=\"invite\"")
    );
    let made = submit(&open, "/sign-up", &person("zoe@example.com"), OWN).await;
    assert_eq!(made.status, 303, "{}", made.body);
    let account = click(&open, made.header("location"), &cookie_of(&made)).await;
    assert!(account.body.contains("Zoë Example") && account.body.contains("zoe@example.com"));
    let again = submit(&open, "/sign-up", &person("ZOE@example.com"), OWN).await;
    assert_eq!(again.status, 409);
    assert!(again.body.contains("id=\"email-error\""));
}

#[tokio::test]
async fn an_invitation_makes_one_account() {
    let world = with_sign_up(SignUp::Invite).await;
    let inviting =
        world
            .accounts
            .users
            .invite(Role::Member, Duration::from_secs(60), Origin::OPERATOR);
    let code = inviting.await.unwrap().code;
    let page = world.browse(&format!("/sign-up?invite={code}")).await;
    assert!(page.body.contains(&format!("value=\"{code}\"")));
    let mut form = person("zoe@example.com").to_vec();
    assert_eq!(submit(&world, "/sign-up", &form, OWN).await.status, 403);
    form.push(("invite", &code));
    assert_eq!(submit(&world, "/sign-up", &form, OWN).await.status, 303);
    form[3].1 = "yan@example.com";
    let used = submit(&world, "/sign-up", &form, OWN).await;
    assert_eq!(used.status, 403);
    assert!(used.body.contains("id=\"invite-error\""));
}

#[tokio::test]
async fn mistakes_of_newcomers_are_shown_beside_the_fields_and_passwords_are_not() {
    let world = with_sign_up(SignUp::Open).await;
    give_password(&world, ADA).await;
    let attack = "\"><script>alert(1)</script>";
    let form = [
        ("first_name", ""),
        ("middle_name", attack),
        ("last_name", attack),
        ("email", attack),
        ("password", "secret7"),
    ];
    let page = submit(&world, "/sign-up", &form, OWN).await;
    assert_eq!(page.status, 422);
    for id in ["first_name-error", "email-error", "password-error"] {
        assert!(page.body.contains(&format!("id=\"{id}\"")), "{id}");
        assert!(
            page.body.contains(&format!("aria-describedby=\"{id}\"")),
            "{id}"
        );
    }
    assert!(!page.body.contains("secret7") && !page.body.contains("<script>alert"));
}

/// H24: the door that the first account comes through closes behind it.
#[tokio::test]
async fn the_setup_makes_one_administrator_and_closes() {
    let world = World::new().await;
    let token = world.accounts.users.setup_token().await.unwrap().unwrap();
    for path in ["/setup", "/setup?token=", "/setup?token=guess"] {
        assert_eq!(world.browse(path).await.status, 404, "{path}");
    }
    let path = format!("/setup?token={token}");
    let page = world.browse(&path).await;
    assert_eq!(page.status, 200);
    assert!(
        page.body
            .contains(&format!("name=\"token\" value=\"{token}\""))
    );
    let mut form = person("root@example.org").to_vec();
    assert_eq!(submit(&world, "/setup", &form, OWN).await.status, 404);
    form.push(("token", &token));
    let mut weak = form.clone();
    weak[4].1 = "short";
    let refused = submit(&world, "/setup", &weak, OWN).await;
    assert_eq!(refused.status, 422);
    assert!(
        refused
            .body
            .contains(&format!("name=\"token\" value=\"{token}\""))
    );

    let made = submit(&world, "/setup", &form, OWN).await;
    assert_eq!(made.status, 303, "{}", made.body);
    let account = click(&world, "/account", &cookie_of(&made)).await;
    assert!(account.body.contains("administrator"));
    assert_eq!(world.browse(&path).await.status, 404);
    form[3].1 = "other@example.org";
    assert_eq!(submit(&world, "/setup", &form, OWN).await.status, 404);
}

/// H8: forms that let somebody in are sent by our own pages only.
#[tokio::test]
async fn other_sites_cannot_sign_anybody_in_or_up() {
    let world = with_sign_up(SignUp::Open).await;
    let token = world.accounts.users.setup_token().await.unwrap().unwrap();
    let mut set_up = person("root@example.org").to_vec();
    set_up.push(("token", &token));
    let sign_up = person("zoe@example.com");
    let sign_in = credentials("ada@example.com", PASSWORD);
    let forms: [(&str, &[(&str, &str)]); 3] = [
        ("/setup", &set_up),
        ("/sign-up", &sign_up),
        ("/sign-in", &sign_in),
    ];
    for (path, form) in forms {
        for foreign in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let answer = submit(&world, path, form, &[foreign]).await;
            assert_eq!(answer.status, 403, "{path} {foreign:?}");
            assert!(!answer.headers.contains_key("set-cookie"));
        }
    }
    assert!(world.accounts.users.is_setup_open(&token).await.unwrap());
    let nobody = world
        .accounts
        .users
        .get(UserRef::Email("zoe@example.com"))
        .await;
    assert!(nobody.is_err());
}
