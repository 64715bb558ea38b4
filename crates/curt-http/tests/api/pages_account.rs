//! `/account`: who somebody is, their password, and where they are signed in.

use curt_accounts::{Origin, SignIn, UserEdit, UserRef};
use curt_core::User;

use crate::harness::{ADA, Answer, BOB, PASSWORD, World};
use crate::pages_forms::{COOKIE, click, csrf_in, submit};

/// A browser in which somebody is signed in.
pub(crate) struct Browser<'a> {
    world: &'a World,
    pub(crate) token: String,
    csrf: String,
}

impl<'a> Browser<'a> {
    pub(crate) async fn of(world: &'a World, token: String) -> Self {
        let page = click(world, "/account", &token).await;
        let csrf = csrf_in(&page);
        Self { world, token, csrf }
    }

    pub(crate) async fn ada(world: &'a World) -> Self {
        Self::of(world, world.session(ADA).await).await
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut fields = fields.to_vec();
        fields.push(("csrf", &self.csrf));
        self.post_from("https://sho.rt", path, &fields).await
    }

    async fn post_from(&self, origin: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let cookie = format!("{COOKIE}={}", self.token);
        let headers = [("origin", origin), ("cookie", cookie.as_str())];
        submit(self.world, path, fields, &headers).await
    }

    async fn is_signed_in(&self) -> bool {
        click(self.world, "/account", &self.token).await.status == 200
    }
}

/// The fields of the form that says yes, but for the one that [`Browser::post`] adds.
pub(crate) fn yes_in(question: &Answer) -> Vec<(&str, &str)> {
    let main = question.body.split("<main").nth(1).unwrap();
    let hidden = main.split("type=\"hidden\" name=\"").skip(1);
    let fields = hidden.map(|field| {
        let (name, rest) = field.split_once("\" value=\"").unwrap();
        (name, rest.split('"').next().unwrap())
    });
    fields.filter(|(name, _)| *name != "csrf").collect()
}

async fn second_session(world: &World, agent: &str) -> String {
    let shown = SignIn {
        email: "ada@example.com",
        password: PASSWORD,
        agent,
        replaces: None,
    };
    let signing_in = world.accounts.users.sign_in(shown, Origin::OPERATOR);
    signing_in.await.unwrap().token
}

async fn ada(world: &World) -> User {
    world.accounts.users.get(UserRef::Id(ADA)).await.unwrap()
}

#[tokio::test]
async fn the_page_is_for_whoever_is_signed_in() {
    let world = World::new().await;
    let away = world.browse("/account").await;
    assert_eq!(away.status, 303);
    assert_eq!(away.header("location"), "/sign-in?next=/account");
    let token = world.session(ADA).await;
    let page = click(&world, "/account", &token).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("cache-control"), "no-store");
    assert!(page.body.contains("ada@example.com") && page.body.contains("this one"));
    assert!(!page.body.contains(&token));
}

#[tokio::test]
async fn names_and_email_can_be_changed() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    let form = [
        ("first_name", "Ada"),
        ("middle_name", "King"),
        ("last_name", "Lovelace"),
        ("email", "Ada@example.org"),
    ];
    let before = ada(&world).await;
    for password in ["", "not it at all"] {
        let typed = [&form[..], &[("current_password", password)]].concat();
        let refused = browser.post("/account", &typed).await;
        assert_eq!(refused.status, 422);
        assert!(refused.body.contains("id=\"current_password-error\""));
        assert_eq!(ada(&world).await, before, "nothing is changed");
    }
    let named = [&form[..3], &[("email", "Ada@Example.com")]].concat();
    assert_eq!(browser.post("/account", &named).await.status, 303);
    let password = ("current_password", PASSWORD);
    let typed = [&form[..], &[password]].concat();
    let saved = browser.post("/account", &typed).await;
    assert_eq!(
        (saved.status.as_u16(), saved.header("location")),
        (303, "/account?done=profile")
    );
    let user = ada(&world).await;
    assert_eq!(
        (&*user.first_name, &*user.email),
        ("Ada", "ada@example.org")
    );
    let taken = browser
        .post(
            "/account",
            &[form[0], ("email", "bob@example.com"), password],
        )
        .await;
    assert_eq!(taken.status, 409);
    assert!(taken.body.contains("id=\"email-error\""));
    assert!(taken.body.contains("value=\"bob@example.com\""));
    assert_eq!(&*ada(&world).await.email, "ada@example.org");
}

#[tokio::test]
async fn a_new_password_ends_every_other_session() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    let other = Browser::of(&world, second_session(&world, "Other/1").await).await;
    let wrong = [
        ("old_password", "not it at all"),
        ("new_password", "a new password"),
        ("new_password_again", "a new password"),
    ];
    let refused = browser.post("/account/password", &wrong).await;
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("id=\"old_password-error\""));
    assert!(!refused.body.contains("a new password"));
    assert!(refused.body.contains("<title>Error: "));
    assert!(
        refused
            .body
            .contains("<a href=\"#old_password\">This is not your password.</a>"),
        "at the top, too"
    );
    let focused = refused.body.split("autofocus").next().unwrap();
    assert!(
        focused.rfind("<input").unwrap() == focused.rfind("<input id=\"old_password\"").unwrap()
    );
    let differs = [
        ("old_password", PASSWORD),
        ("new_password", "a new password"),
        ("new_password_again", "a new passwort"),
    ];
    let refused = browser.post("/account/password", &differs).await;
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("id=\"new_password_again-error\""));
    let short = [
        ("old_password", PASSWORD),
        ("new_password", "short"),
        ("new_password_again", "short"),
    ];
    let refused = browser.post("/account/password", &short).await;
    assert!(refused.body.contains("id=\"new_password-error\""));
    assert!(other.is_signed_in().await);

    let right = [
        ("old_password", PASSWORD),
        ("new_password", "a new password"),
        ("new_password_again", "a new password"),
    ];
    assert_eq!(browser.post("/account/password", &right).await.status, 303);
    assert!(browser.is_signed_in().await);
    assert!(!other.is_signed_in().await);
}

#[tokio::test]
async fn a_new_password_revokes_api_keys_if_the_box_is_ticked() {
    for (ticked, status) in [(false, 200), (true, 401)] {
        let world = World::new().await;
        let browser = Browser::ada(&world).await;
        let page = click(&world, "/account", &browser.token).await;
        assert!(page.body.contains("name=\"revoke_api_keys\""), "an offer");
        let mut form = vec![
            ("old_password", PASSWORD),
            ("new_password", "a new password"),
            ("new_password_again", "a new password"),
        ];
        form.extend(ticked.then_some(("revoke_api_keys", "on")));
        assert_eq!(browser.post("/account/password", &form).await.status, 303);
        assert_eq!(lists_with(&world, &world.key).await, status);
        assert_eq!(lists_with(&world, &world.stranger).await, 200);
    }
}

#[tokio::test]
async fn guesses_at_the_old_password_are_limited() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    let wrong = [
        ("old_password", "not it at all"),
        ("new_password", "a new password"),
        ("new_password_again", "a new password"),
    ];
    for _ in 0..5 {
        assert_eq!(browser.post("/account/password", &wrong).await.status, 422);
    }
    assert_eq!(browser.post("/account/password", &wrong).await.status, 429);
}

#[tokio::test]
async fn another_browser_can_be_signed_out() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    let other = Browser::of(&world, second_session(&world, "Phone/7").await).await;
    let page = click(&world, "/account", &browser.token).await;
    assert!(page.body.contains("Phone/7"));
    let id = page.body.split("name=\"session\" value=\"").nth(1).unwrap();
    let id = id.split('"').next().unwrap();
    let asked = browser
        .post("/account/sessions/end", &[("session", id)])
        .await;
    assert_eq!(asked.status, 200);
    assert!(asked.body.contains("<h1>Sign out Phone/7?</h1>"));
    assert!(other.is_signed_in().await, "a question comes first");
    let ended = browser.post("/account/sessions/end", &yes_in(&asked)).await;
    assert_eq!(ended.status, 303);
    assert!(!other.is_signed_in().await && browser.is_signed_in().await);
    // Nobody else's.
    let bob = Browser::of(&world, world.session(BOB).await).await;
    let own = &browser.token["curts_".len()..][..16];
    for form in [
        &[("session", own)][..],
        &[("session", own), ("confirmed", "yes")],
    ] {
        let refused = bob.post("/account/sessions/end", form).await;
        assert_eq!(refused.status, 404);
    }
    assert!(browser.is_signed_in().await);
}

#[tokio::test]
async fn sessions_are_told_by_browser_and_system() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    let firefox =
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0";
    second_session(&world, firefox).await;
    second_session(&world, "").await;
    let page = click(&world, "/account", &browser.token).await;
    assert!(
        page.body.contains(">Firefox on Windows</td>"),
        "{}",
        page.body
    );
    assert!(page.body.contains(">Unknown browser</td>"));
    assert!(
        page.body
            .contains("<time datetime=\"2026-01-01T00:00:00.000Z\">2026-01-01 00:00 UTC</time>")
    );
}

pub(crate) async fn lists_with(world: &World, key: &str) -> u16 {
    let headers = [("x-api-key", key)];
    let request = http::Request::get("/api/v1/links").header(headers[0].0, headers[0].1);
    let answer = world.send(request.body(axum::body::Body::empty()).unwrap());
    answer.await.status.as_u16()
}

/// H8: every form that acts for a session must come from a page of ours that was made for this session.
#[tokio::test]
async fn no_form_counts_from_elsewhere_or_without_its_token() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    let bob = Browser::of(&world, world.session(BOB).await).await;
    let prefix = world.key["curt_".len()..][..8].to_owned();
    let session = browser.token["curts_".len()..][..16].to_owned();
    let forms: &[(&str, &[(&str, &str)])] = &[
        (
            "/",
            &[("target", "https://a.example/"), ("alias", "forged")],
        ),
        ("/sign-out", &[]),
        (
            "/account",
            &[("first_name", "Forged"), ("email", "forged@example.com")],
        ),
        (
            "/account/password",
            &[
                ("old_password", PASSWORD),
                ("new_password", "forged password"),
                ("new_password_again", "forged password"),
            ],
        ),
        (
            "/account/sessions/end",
            &[("session", &session), ("confirmed", "yes")],
        ),
        (
            "/account/keys",
            &[
                ("key_name", "forged"),
                ("scope", "read"),
                ("expires_at", "never"),
            ],
        ),
        ("/account/keys/rotate", &[("prefix", &prefix)]),
        (
            "/account/keys/revoke",
            &[("prefix", &prefix), ("confirmed", "yes")],
        ),
    ];
    for (path, fields) in forms {
        let with = |csrf: &'static str| [fields, &[("csrf", csrf)][..]].concat();
        let with_own = [fields, &[("csrf", browser.csrf.as_str())][..]].concat();
        let with_other = [fields, &[("csrf", bob.csrf.as_str())][..]].concat();
        for (origin, form) in [
            ("https://evil.example", &with_own),
            ("null", &with_own),
            ("https://sho.rt", &fields.to_vec()),
            ("https://sho.rt", &with("")),
            ("https://sho.rt", &with_other),
        ] {
            let answer = browser.post_from(origin, path, form).await;
            assert_eq!(answer.status, 403, "{path} from {origin} with {form:?}");
            assert!(!answer.headers.contains_key("set-cookie"), "{path}");
        }
    }
    assert!(browser.is_signed_in().await);
    assert_eq!(&*ada(&world).await.first_name, "Ann");
    assert_eq!(world.browse("/forged").await.status, 404);
    assert_eq!(lists_with(&world, &world.key).await, 200);
    assert_eq!(
        world.accounts.api_keys.list(Some(ADA)).await.unwrap().len(),
        1
    );
    let page = click(&world, "/account", &second_session(&world, "x").await).await;
    assert_eq!(page.status, 200, "the password is still the same");
}

/// H6: whatever somebody calls themselves, their keys or their browser is text.
#[tokio::test]
async fn markup_in_names_is_escaped() {
    let world = World::new().await;
    let attack = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}";
    world.session(ADA).await;
    let token = second_session(&world, attack).await;
    let edit = UserEdit {
        first_name: Some(attack.to_owned()),
        middle_name: Some(Some(attack.to_owned())),
        last_name: Some(attack.to_owned()),
        email: Some("\"><script>alert(3)</script>@example.com".to_owned()),
        ..UserEdit::default()
    };
    let users = &world.accounts.users;
    let editing = users.edit(UserRef::Id(ADA), &edit, None, Origin::OPERATOR);
    editing.await.unwrap();
    world.key_for(ADA, attack, &[curt_core::Scope::Read]).await;
    for path in ["/account", "/", "/account?done=<script>alert(1)</script>"] {
        let page = click(
            &world,
            &path.replace('<', "%3C").replace('>', "%3E"),
            &token,
        )
        .await;
        assert_eq!(page.status, 200, "{path}");
        assert!(!page.body.contains("<script>alert"), "{path}");
        assert!(!page.body.contains("<img src=x"), "{path}");
        assert!(page.body.contains("&#60;script&#62;alert(1)"), "{path}");
    }
}
