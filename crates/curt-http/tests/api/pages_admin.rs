//! `/admin/…`: users, invitations, limits, audit log, blocklist, system and planner, as administrators see them.

use curt_accounts::{AccountSettings, InviteRef, LimitSettings, SignUp, UserRef};
use curt_core::{OwnerId, Role, Scope};
use curt_http::HttpSettings;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{ADA, Answer, BOB, ROOT, World, account_settings};
use crate::pages_account::{Browser, yes_in};
use crate::pages_forms::{click, submit};

const PAGES: [&str; 8] = [
    "/admin/users",
    "/admin/users/1",
    "/admin/invitations",
    "/admin/limits",
    "/admin/audit",
    "/admin/blocklist",
    "/admin/system",
    "/admin/plan?seed=A",
];

pub(crate) async fn root(world: &World) -> Browser<'_> {
    Browser::of(world, world.session(ROOT).await).await
}

async fn user(world: &World, id: OwnerId) -> curt_core::User {
    world.accounts.users.get(UserRef::Id(id)).await.unwrap()
}

/// A request of an administrator's API key.
pub(crate) async fn api(world: &World, method: Method, path: &str) -> Answer {
    let key = world
        .key_for(ROOT, path, &[Scope::Read, Scope::Admin])
        .await;
    let headers = [("authorization", &*format!("Bearer {key}"))];
    world.call_raw(method, path, &headers, None).await
}

pub(crate) fn location(answer: &Answer) -> (u16, &str) {
    (answer.status.as_u16(), answer.header("location"))
}

#[tokio::test]
async fn the_pages_are_for_administrators_and_small() {
    let world = World::new().await;
    let (ada, root) = (world.session(ADA).await, world.session(ROOT).await);
    for path in PAGES {
        let away = world.browse(path).await;
        let next = path.split('?').next().unwrap();
        assert_eq!(location(&away), (303, &*format!("/sign-in?next={next}")));
        let refused = click(&world, path, &ada).await;
        assert_eq!(refused.status, 403, "{path}");
        let page = click(&world, path, &root).await;
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        assert!(
            page.body.len() <= 60_000,
            "{path}: {} bytes",
            page.body.len()
        );
        assert_eq!(page.header("cache-control"), "no-store");
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        for inline in ["<style", "style=\"", "<script>", "onclick", "javascript:"] {
            assert!(!page.body.contains(inline), "{path}: {inline}");
        }
        let marked = page.body.matches("aria-current=\"page\"").count();
        assert_eq!(marked, 1, "{path}: a page is marked once");
        assert_eq!(page.body.matches("<h1").count(), 1, "{path}");
    }
}

#[tokio::test]
async fn forms_without_the_token_of_a_page_do_nothing() {
    let world = World::new().await;
    let token = world.session(ROOT).await;
    let cookie = format!("{}={token}", crate::pages_forms::COOKIE);
    let headers = [("origin", "https://sho.rt"), ("cookie", cookie.as_str())];
    for (path, fields) in [
        (
            "/admin/users/1/switch",
            &[("disabled", "yes"), ("confirmed", "yes")][..],
        ),
        (
            "/admin/users/1/remove",
            &[("links", "delete"), ("confirmed", "yes")],
        ),
        ("/admin/users/1", &[("role", "admin")]),
        ("/admin/invitations", &[("role", "admin")]),
    ] {
        let refused = submit(&world, path, fields, &headers).await;
        assert_eq!(refused.status, 403, "{path}");
    }
    let ada = user(&world, ADA).await;
    assert_eq!((ada.role, ada.disabled_at), (Role::Member, None));
}

#[tokio::test]
async fn accounts_are_made_changed_and_kept_out() {
    let world = World::new().await;
    let root = root(&world).await;
    let new = [
        ("first_name", "<b>Dan"),
        ("last_name", "D"),
        ("email", "dan@example.com"),
        ("password", "short"),
        ("role", "member"),
    ];
    let refused = root.post("/admin/users", &new).await;
    assert_eq!(refused.status, 422);
    assert!(
        refused.body.contains("value=\"&#60;b&#62;Dan\"") && !refused.body.contains("\"short\"")
    );
    let good = [new[0], new[1], new[2], ("password", "long enough"), new[4]];
    let made = root.post("/admin/users", &good).await;
    assert!(made.header("location").ends_with("?done=added"), "{made:?}");
    let path = made
        .header("location")
        .split('?')
        .next()
        .unwrap()
        .to_owned();
    let page = click(&world, &path, &root.token).await;
    assert!(page.body.contains("&#60;b&#62;Dan") && !page.body.contains("<b>Dan"));
}

#[tokio::test]
async fn roles_and_limits_are_changed_and_users_kept_out() {
    let world = World::new().await;
    let root = root(&world).await;
    let wrong = [
        ("role", "member"),
        ("creations", "many"),
        ("redirections", ""),
    ];
    let refused = root.post("/admin/users/1", &wrong).await;
    assert_eq!(refused.status, 422);
    assert!(
        refused.body.contains("id=\"creations-error\"") && refused.body.contains("value=\"many\"")
    );
    let right = [
        ("role", "admin"),
        ("creations", "5/1m"),
        ("redirections", ""),
    ];
    let saved = root.post("/admin/users/1", &right).await;
    assert_eq!(location(&saved), (303, "/admin/users/1?done=saved"));
    let ada = user(&world, ADA).await;
    assert_eq!(
        (ada.role, ada.allowance.creations.unwrap().amount),
        (Role::Admin, 5)
    );
    let limits = click(&world, "/admin/limits", &root.token).await;
    assert!(limits.body.contains("5/1m"), "{}", limits.body);

    let asked = root
        .post("/admin/users/2/switch", &[("disabled", "yes")])
        .await;
    assert_eq!(asked.status, 200);
    assert!(
        user(&world, BOB).await.disabled_at.is_none(),
        "a question comes first"
    );
    let done = root.post("/admin/users/2/switch", &yes_in(&asked)).await;
    assert_eq!(location(&done), (303, "/admin/users/2?done=disabled"));
    assert!(user(&world, BOB).await.disabled_at.is_some());
    let done = root
        .post("/admin/users/2/switch", &[("disabled", "no")])
        .await;
    assert_eq!(location(&done), (303, "/admin/users/2?done=enabled"));
    // Nobody locks themselves out.
    let own = root.post(
        "/admin/users/4/switch",
        &[("disabled", "yes"), ("confirmed", "yes")],
    );
    assert_eq!(own.await.status, 422);
    root.post("/admin/users/4", &[("role", "member")]).await;
    assert_eq!(user(&world, ROOT).await.role, Role::Admin);
    assert_eq!(
        click(&world, "/admin/users/99", &root.token).await.status,
        404
    );
}

#[tokio::test]
async fn a_user_is_removed_and_their_links_handed_over() {
    let world = World::new().await;
    world.link("mine").await;
    let root = root(&world).await;
    let undecided = root
        .post(
            "/admin/users/1/remove",
            &[("links", "hand_over"), ("confirmed", "yes")],
        )
        .await;
    assert_eq!(undecided.status, 422);
    let nobody = [("links", "hand_over"), ("links_to", "nobody@example.com")];
    let refused = root.post("/admin/users/1/remove", &nobody).await;
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("id=\"links_to-error\""));
    let heir = [("links", "hand_over"), ("links_to", "Bob@example.com")];
    let asked = root.post("/admin/users/1/remove", &heir).await;
    assert_eq!(asked.status, 200);
    assert!(
        asked.body.contains("their links go to Bob@example.com"),
        "{}",
        asked.body
    );
    let removed = root.post("/admin/users/1/remove", &yes_in(&asked)).await;
    assert_eq!(location(&removed), (303, "/admin/users?done=removed"));
    assert!(world.accounts.users.get(UserRef::Id(ADA)).await.is_err());
    let link = api(&world, Method::GET, "/api/v1/links/mine").await;
    assert_eq!(link.json()["owner_id"], BOB.0.to_string());
}

#[tokio::test]
async fn open_invitations_are_listed_and_each_can_be_revoked() {
    let users = AccountSettings {
        sign_up: SignUp::Invite,
        ..account_settings()
    };
    let world = World::built(HttpSettings::default(), users, LimitSettings::default()).await;
    let root = root(&world).await;
    let empty = click(&world, "/admin/invitations", &root.token).await;
    assert!(empty.body.contains("No invitation waits"), "{}", empty.body);
    for ends in ["month", "day"] {
        let form = [("role", "member"), ("ends", ends)];
        assert_eq!(root.post("/admin/invitations", &form).await.status, 201);
    }
    let key = world.key_for(ROOT, "invites", &[Scope::Admin]).await;
    let bearer = format!("Bearer {key}");
    let call = async |method, path: &str| {
        let headers = [("authorization", &*bearer)];
        world.call_raw(method, path, &headers, None).await
    };
    let listed = call(Method::GET, "/api/v1/invites").await.json();
    let invites = listed["invites"].as_array().unwrap();
    assert_eq!(invites.len(), 2, "{listed}");
    assert_eq!(listed["is_complete"], true);
    assert_eq!(invites[0]["created_by"], ROOT.0.to_string());
    assert_eq!(invites[0]["role"], "member");
    assert!(invites[0]["expires_at"].as_str() < invites[1]["expires_at"].as_str());
    let id = invites[0]["id"].as_str().unwrap();
    let page = click(&world, "/admin/invitations", &root.token).await;
    assert!(page.body.contains(id), "{}", page.body);
    let asked = root
        .post("/admin/invitations/revoke", &[("code", id)])
        .await;
    let done = root
        .post("/admin/invitations/revoke", &yes_in(&asked))
        .await;
    assert_eq!(location(&done), (303, "/admin/invitations?done=revoked"));
    let left = call(Method::GET, "/api/v1/invites").await.json();
    let other = invites[1]["id"].as_str().unwrap();
    assert_eq!(left["invites"].as_array().unwrap().len(), 1, "{left}");
    assert_eq!(left["invites"][0]["id"], other);
    // What is listed lets nobody in.
    let form = [
        ("first_name", "Eve"),
        ("last_name", "Example"),
        ("email", "eve@example.com"),
        ("password", "a good password"),
        ("invite", other),
    ];
    let own = [("origin", "https://sho.rt")];
    assert_eq!(submit(&world, "/sign-up", &form, &own).await.status, 403);
    let path = format!("/api/v1/invites/{other}");
    assert_eq!(call(Method::DELETE, &path).await.status, 204);
    let none = call(Method::GET, "/api/v1/invites").await.json();
    assert_eq!(none["invites"].as_array().unwrap().len(), 0, "{none}");
}

#[tokio::test]
async fn an_invitation_is_shown_once_and_can_be_taken_back() {
    let users = AccountSettings {
        sign_up: SignUp::Invite,
        ..account_settings()
    };
    let world = World::built(HttpSettings::default(), users, LimitSettings::default()).await;
    let root = root(&world).await;
    let made = root
        .post("/admin/invitations", &[("role", "member"), ("ends", "day")])
        .await;
    assert_eq!(made.status, 201);
    let address = made
        .body
        .split("value=\"https://sho.rt/sign-up?invite=")
        .nth(1)
        .unwrap();
    let code = address.split('"').next().unwrap().to_owned();
    assert!(
        world
            .accounts
            .users
            .is_invited(InviteRef::Code(&code))
            .await
            .unwrap()
    );
    let again = click(&world, "/admin/invitations", &root.token).await;
    assert!(!again.body.contains(&code), "shown once");
    assert!(
        again.body.contains("root@example.com</a>"),
        "{}",
        again.body
    );
    let typed = format!("https://sho.rt/sign-up?invite={code}");
    let asked = root
        .post("/admin/invitations/revoke", &[("code", &typed)])
        .await;
    assert_eq!(asked.status, 200);
    assert!(
        world
            .accounts
            .users
            .is_invited(InviteRef::Code(&code))
            .await
            .unwrap(),
        "a question comes first"
    );
    let done = root
        .post("/admin/invitations/revoke", &yes_in(&asked))
        .await;
    assert_eq!(location(&done), (303, "/admin/invitations?done=revoked"));
    assert!(
        !world
            .accounts
            .users
            .is_invited(InviteRef::Code(&code))
            .await
            .unwrap()
    );
    let gone = root
        .post("/admin/invitations/revoke", &[("code", &code)])
        .await;
    assert_eq!(gone.status, 422);
    let log = api(&world, Method::GET, "/api/v1/audit?action=invite_revoked")
        .await
        .json();
    assert_eq!(log["entries"].as_array().unwrap().len(), 1);
    assert_eq!(log["entries"][0]["actor_id"], ROOT.0.to_string());
}

#[tokio::test]
async fn the_audit_log_is_filtered_and_paged() {
    let world = World::new().await;
    let (ada, root) = (world.session(ADA).await, world.session(ROOT).await);
    for _ in 0..60 {
        click(&world, "/account", &ada).await;
        world.session(ADA).await;
    }
    let path = "/api/v1/audit?action=signed_in&subject=ADA@&limit=25";
    let (mut pages, mut at) = (Vec::new(), path.to_owned());
    loop {
        let page = api(&world, Method::GET, &at).await.json();
        let entries = page["entries"].as_array().unwrap();
        for entry in entries {
            assert_eq!(
                (&entry["action"], &entry["subject"]),
                (&json!("signed_in"), &json!("ada@example.com"))
            );
        }
        pages.push(entries.len());
        match &page["next"] {
            Value::String(next) => at = format!("{path}&cursor={next}"),
            _ => break,
        }
    }
    assert_eq!(pages.iter().sum::<usize>(), 61, "{pages:?}");
    assert!(pages[..2] == [25, 25], "{pages:?}");
    let shown = click(&world, "/admin/audit?action=signed_in&subject=root", &root).await;
    assert!(shown.body.contains("root@example.com") && !shown.body.contains("ada@example.com"));
    assert!(shown.body.contains("<option value=\"signed_in\" selected>"));
    let older = click(&world, "/admin/audit?action=signed_in&subject=ada", &root).await;
    assert!(older.body.contains("rel=\"next\">Older"), "{}", older.body);
    for wrong in ["action=Signed%20In", "actor_id=x"] {
        let refused = click(&world, &format!("/admin/audit?{wrong}"), &root).await;
        assert_eq!(refused.status, 422, "{wrong}");
    }
    let none = click(&world, "/admin/audit?subject=%3Cscript%3E", &root).await;
    assert!(none.body.contains("No entry matches.") && !none.body.contains("<script>"));
}
