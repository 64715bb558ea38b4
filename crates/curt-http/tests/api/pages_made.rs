//! What somebody who is signed in makes: API keys on `/account`, and links on the start page.

use http::Method;

use crate::harness::{Answer, BOB, World};
use crate::pages_account::{Browser, lists_with, yes_in};
use crate::pages_forms::{click, submit};

fn token_in(page: &Answer) -> String {
    let token = page.body.split("id=\"token\"").nth(1).unwrap();
    let token = token.split("value=\"").nth(1).unwrap();
    token.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn keys_are_made_rotated_and_revoked() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    let form = [
        ("key_name", "phone"),
        ("scope", "read"),
        ("expires_at", "month"),
    ];
    let made = browser.post("/account/keys", &form).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.header("cache-control"), "no-store");
    let key = token_in(&made);
    assert_eq!(lists_with(&world, &key).await, 200);
    let page = click(&world, "/account", &browser.token).await;
    assert!(!page.body.contains(&key), "a key is shown once");
    assert!(page.body.contains("2026-01-31 00:00 UTC"));

    let again = browser.post("/account/keys", &form).await;
    assert_eq!(again.status, 409);
    assert!(again.body.contains("id=\"key_name-error\""));

    let prefix = &key["curt_".len()..][..8];
    let rotated = browser
        .post("/account/keys/rotate", &[("prefix", prefix)])
        .await;
    assert_eq!(rotated.status, 201);
    let successor = token_in(&rotated);
    assert_eq!(lists_with(&world, &successor).await, 200);
    assert_eq!(lists_with(&world, &key).await, 200, "for a day");
    let asked = browser
        .post("/account/keys/revoke", &[("prefix", prefix)])
        .await;
    assert_eq!(asked.status, 200);
    assert!(
        asked
            .body
            .contains("<h1>Revoke the API key “phone (retired")
    );
    assert!(asked.body.contains("href=\"/account#keys\">Cancel</a>"));
    assert_eq!(
        lists_with(&world, &key).await,
        200,
        "a question comes first"
    );
    let revoked = browser.post("/account/keys/revoke", &yes_in(&asked)).await;
    assert_eq!(revoked.status, 303);
    assert_eq!(lists_with(&world, &key).await, 401);
    assert_eq!(lists_with(&world, &successor).await, 200);

    let bob = Browser::of(&world, world.session(BOB).await).await;
    let prefix = &successor["curt_".len()..][..8];
    for path in ["/account/keys/rotate", "/account/keys/revoke"] {
        for form in [
            &[("prefix", prefix)][..],
            &[("prefix", prefix), ("confirmed", "yes")],
        ] {
            assert_eq!(bob.post(path, form).await.status, 404, "{path}");
        }
    }
    assert_eq!(lists_with(&world, &successor).await, 200);
}

#[tokio::test]
async fn nobody_makes_a_key_that_can_do_more_than_they() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    let page = click(&world, "/account", &browser.token).await;
    assert!(!page.body.contains("value=\"admin\""));
    for (scope, expires_at) in [("admin", "never"), ("nonsense", "never"), ("read", "soon")] {
        let form = [
            ("key_name", "big"),
            ("scope", scope),
            ("expires_at", expires_at),
        ];
        let refused = browser.post("/account/keys", &form).await;
        assert_eq!(refused.status, 422, "{scope} {expires_at}");
        assert!(refused.body.contains("value=\"big\""));
    }
}

#[tokio::test]
async fn whoever_is_signed_in_makes_links_without_a_key() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    for (visibility, password, alias, status) in [
        ("public", "", "my-public", 302),
        ("private", "", "my-private", 401),
        ("password", "sesame", "my-password", 401),
        // Whoever types a password wants it to count.
        ("public", "sesame", "typed", 401),
        ("", "sesame", "typed-too", 401),
    ] {
        let form = [
            ("target", "https://example.com/x"),
            ("alias", alias),
            ("visibility", visibility),
            ("password", password),
        ];
        let made = browser.post("/", &form).await;
        assert_eq!(made.status, 201, "{visibility}: {}", made.body);
        assert!(!made.body.contains("sesame"));
        let says_so = made
            .body
            .contains("It asks for the password that you typed.");
        assert_eq!(says_so, !password.is_empty(), "{alias}");
        let path = format!("/{alias}");
        let request = http::Request::get(&path).body(axum::body::Body::empty());
        let followed = world.send(request.unwrap()).await;
        assert_eq!(followed.status.as_u16(), status, "{alias}");
        let held = world
            .call(Method::GET, &format!("/api/v1/links{path}"), None)
            .await;
        assert_eq!(held.status, 200, "it is hers");
    }
    for path in ["/my-password", "/typed", "/typed-too"] {
        let opened = submit(&world, path, &[("password", "sesame")], &[]).await;
        assert_eq!(opened.header("location"), "https://example.com/x");
    }
}

#[tokio::test]
async fn mistakes_about_who_may_follow_are_shown_beside_the_fields() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    for (visibility, password, id) in [
        ("password", "", "password-error"),
        ("private", "sesame", "password-error"),
        ("everybody", "", "visibility-error"),
    ] {
        let form = [
            ("target", "https://example.com/x"),
            ("visibility", visibility),
            ("password", password),
        ];
        let refused = browser.post("/", &form).await;
        assert_eq!(refused.status, 422);
        assert!(
            refused.body.contains(&format!("id=\"{id}\"")),
            "{visibility}: {}",
            refused.body
        );
    }
    let anonymous = World::anonymous().await;
    let form = [
        ("target", "https://example.com/x"),
        ("visibility", "private"),
    ];
    let refused = submit(&anonymous, "/", &form, &[("origin", "https://sho.rt")]).await;
    assert_eq!(refused.status, 422, "nobody could ever follow it");
}

#[tokio::test]
async fn a_target_without_a_scheme_is_read_alike_by_every_interface() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    for (typed, status) in [("example.com/page?q", 201), ("foo", 422)] {
        let rest = serde_json::json!({"target": typed, "alias": "by-rest"});
        let rest = world.call(Method::POST, "/api/v1/links", Some(rest));
        assert_eq!(rest.await.status.as_u16(), status, "{typed}");
        let original = serde_json::json!({"original_url": typed, "custom_alias": "by-original"});
        let original = world.call(Method::POST, "/api/v1/createURL", Some(original));
        let is_made = original.await.status.is_success();
        assert_eq!(is_made, status == 201, "{typed}");
        let form = [("target", typed), ("alias", "by-page")];
        let page = browser.post("/", &form).await;
        assert_eq!(page.status.as_u16(), status, "{typed}");
    }
    for path in ["/by-rest", "/by-original", "/by-page"] {
        let followed = world.browse(path).await;
        assert_eq!(followed.header("location"), "https://example.com/page?q");
    }
}
