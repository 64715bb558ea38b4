//! `/links/{key}/edit`: the form that changes a link, and whatever else is done with it.

use http::Method;
use serde_json::json;

use crate::harness::{Answer, BOB, ROOT, World};
use crate::pages_account::{Browser, yes_in};
use crate::pages_forms::click;
use crate::pages_links::make;

pub(crate) const HOSTILE: &str = "<script>alert(1)</script>\"'&";

/// The fields of the edit form, as a browser would send them.
fn form_of(page: &Answer) -> Vec<(String, String)> {
    let form = page.body.split("/edit\" novalidate>").nth(1).unwrap();
    let form = form.split("</form>").next().unwrap();
    let unescaped = |text: &str| {
        text.replace("&#60;", "<")
            .replace("&#62;", ">")
            .replace("&#34;", "\"")
            .replace("&#39;", "'")
            .replace("&#38;", "&")
    };
    let mut fields = Vec::new();
    for input in form.split("<input ").skip(1) {
        let input = input.split('>').next().unwrap();
        let part = |name: &str| {
            let rest = input.split(&format!("{name}=\"")).nth(1)?;
            Some(unescaped(rest.split('"').next().unwrap()))
        };
        let is_off = input.contains("type=\"checkbox\"") && !input.contains(" checked");
        if let (Some(name), false) = (part(" name").or_else(|| part("name")), is_off) {
            fields.push((name, part("value").unwrap_or_default()));
        }
    }
    for select in form.split("<select ").skip(1) {
        let name = select
            .split("name=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let chosen = select
            .split("</select>")
            .next()
            .unwrap()
            .split("<option value=\"");
        let chosen = chosen
            .skip(1)
            .find(|option| option.split('>').next().unwrap().contains(" selected"));
        let chosen = chosen.unwrap().split('"').next().unwrap();
        fields.push((name.to_owned(), chosen.to_owned()));
    }
    fields.retain(|(name, _)| name != "csrf");
    fields
}

fn set(form: &mut [(String, String)], name: &str, value: &str) {
    let field = form.iter_mut().find(|(known, _)| known == name);
    value.clone_into(&mut field.unwrap_or_else(|| panic!("{name}")).1);
}

async fn save(browser: &Browser<'_>, key: &str, form: &[(String, String)]) -> Answer {
    let form: Vec<(&str, &str)> = form
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    browser.post(&format!("/links/{key}/edit"), &form).await
}

#[tokio::test]
async fn a_form_that_is_sent_as_it_is_changes_nothing() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    make(&world, json!({"alias": "one", "title": HOSTILE, "tags": ["a", "b"], "max_clicks": 5, "expires_at": "2026-03-01T10:20:30Z"})).await;
    let page = click(&world, "/links/one/edit", &browser.token).await;
    assert_eq!(page.status, 200);
    assert!(!page.body.contains("<script>alert"));
    let before = world
        .call(Method::GET, "/api/v1/links/one", None)
        .await
        .json();
    let form = form_of(&page);
    assert_eq!(
        save(&browser, "one", &form).await.header("location"),
        "/links/one?done=saved"
    );
    let same = world
        .call(Method::GET, "/api/v1/links/one", None)
        .await
        .json();
    for field in [
        "target",
        "title",
        "tags",
        "expires_at",
        "max_clicks",
        "visibility",
        "forward_query",
    ] {
        assert_eq!(same[field], before[field], "{field}");
    }
}

#[tokio::test]
async fn a_link_is_edited_by_its_form() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    make(&world, json!({"alias": "one", "title": "Old", "tags": ["a", "b"], "max_clicks": 5, "expires_at": "2026-03-01T10:20:30Z"})).await;
    let page = click(&world, "/links/one/edit", &browser.token).await;
    let mut form = form_of(&page);
    for (name, value) in [
        ("title", ""),
        ("tags", "X y, b"),
        ("max_clicks", ""),
        ("expires_at", ""),
        ("valid_since", "2026-02-01T00:00"),
        ("visibility", "password"),
        ("password", "sesame"),
        ("redirect_status", "307"),
    ] {
        set(&mut form, name, value);
    }
    form.push(("forward_query".to_owned(), "yes".to_owned()));
    assert_eq!(save(&browser, "one", &form).await.status, 303);
    let after = world
        .call(Method::GET, "/api/v1/links/one", None)
        .await
        .json();
    assert_eq!(after["tags"], json!(["x-y", "b"]));
    assert_eq!(
        (&after["title"], &after["expires_at"], &after["max_clicks"]),
        (&json!(null), &json!(null), &json!(null))
    );
    assert_eq!(
        (&after["valid_since"], &after["visibility"]),
        (&json!("2026-02-01T00:00:00.000Z"), &json!("password"))
    );
    assert_eq!(
        (&after["redirect_status"], &after["forward_query"]),
        (&json!(307), &json!(true))
    );
    // The password stays when none is typed.
    let page = click(&world, "/links/one/edit", &browser.token).await;
    assert!(page.body.contains("(empty: it stays)") && !page.body.contains("sesame"));
    form = form_of(&page);
    set(&mut form, "title", "Again");
    assert_eq!(save(&browser, "one", &form).await.status, 303);
}

#[tokio::test]
async fn mistakes_stand_beside_their_fields_and_what_was_typed_stays() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    make(&world, json!({"alias": "one"})).await;
    let page = click(&world, "/links/one/edit", &browser.token).await;
    for (name, value) in [
        ("target", "javascript:alert(1)"),
        ("max_clicks", "many"),
        ("expires_at", "2020-01-01T00:00"),
        ("valid_since", "soon"),
        ("password", "sesame"),
        ("visibility", "nobody"),
    ] {
        let mut form = form_of(&page);
        set(&mut form, name, value);
        let refused = save(&browser, "one", &form).await;
        assert_eq!(refused.status, 422, "{name}: {}", refused.body);
        assert!(
            refused.body.contains(&format!("id=\"{name}-error\"")),
            "{name}: {}",
            refused.body
        );
        assert!(refused.body.contains("<title>Error: "));
        if name != "password" && name != "visibility" {
            assert!(
                refused.body.contains(&format!("value=\"{value}\"")),
                "{name}"
            );
        }
    }
    assert!(!page.body.contains("sesame"));
}

#[tokio::test]
async fn a_conflicting_edit_is_shown_side_by_side_and_not_lost() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    make(
        &world,
        json!({"alias": "one", "title": "Old title", "tags": ["a"]}),
    )
    .await;
    let page = click(&world, "/links/one/edit", &browser.token).await;
    let mut form = form_of(&page);
    set(&mut form, "title", "My <i>title");
    set(&mut form, "tags", "a, mine");
    let theirs = json!({"title": "Their <b>title", "target": "https://example.org/new"});
    let path = "/api/v1/links/one";
    assert_eq!(
        world.call(Method::PATCH, path, Some(theirs)).await.status,
        200
    );
    let shown = save(&browser, "one", &form).await;
    assert_eq!(shown.status, 412);
    assert!(shown.body.contains("Somebody else has changed this link"));
    for words in [
        "Old title",
        "Their &#60;b&#62;title",
        "My &#60;i&#62;title",
        "https://example.org/new",
    ] {
        assert!(shown.body.contains(words), "{words}");
    }
    let stored = world.call(Method::GET, path, None).await.json();
    assert_eq!(stored["title"], "Their <b>title", "nothing is saved yet");
    // What only they changed is in the form, and what both changed is mine.
    let form = form_of(&shown);
    let value = |name: &str| {
        form.iter()
            .find(|(known, _)| known == name)
            .unwrap()
            .1
            .clone()
    };
    assert_eq!(value("target"), "https://example.org/new");
    assert_eq!(
        (value("title"), value("tags")),
        ("My <i>title".to_owned(), "a, mine".to_owned())
    );
    assert_eq!(save(&browser, "one", &form).await.status, 303);
    let stored = world.call(Method::GET, path, None).await.json();
    assert_eq!(
        (&stored["title"], &stored["target"]),
        (&json!("My <i>title"), &json!("https://example.org/new"))
    );
    assert_eq!(stored["tags"], json!(["a", "mine"]));
}

#[tokio::test]
async fn members_reach_their_own_links_only() {
    let world = World::new().await;
    make(&world, json!({"alias": "adas"})).await;
    let bob = Browser::of(&world, world.session(BOB).await).await;
    for path in [
        "/links/adas",
        "/links/adas/edit",
        "/links/nope",
        "/links/%ff",
    ] {
        let page = click(&world, path, &bob.token).await;
        assert_eq!(page.status, 404, "{path}");
        assert!(!page.body.contains("example.com/x"), "{path}");
    }
    for path in [
        "edit",
        "delete",
        "restore",
        "switch",
        "permissions",
        "permissions/revoke",
    ] {
        let form = [
            ("confirmed", "yes"),
            ("target", "https://evil.example/"),
            ("email", "bob@example.com"),
            ("permission", "1"),
        ];
        let answer = bob.post(&format!("/links/adas/{path}"), &form).await;
        assert!(
            [403, 404].contains(&answer.status.as_u16()),
            "{path}: {}",
            answer.status
        );
    }
    assert_eq!(
        world.browse("/adas").await.header("location"),
        "https://example.com/x"
    );
    let root = world.session(ROOT).await;
    let page = click(&world, "/links/adas", &root).await;
    assert!(page.body.contains("Another user’s"));
}

#[tokio::test]
async fn somebody_is_permitted_and_refused_again() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    make(&world, json!({"alias": "mine", "visibility": "private"})).await;
    let granted = browser
        .post("/links/mine/permissions", &[("email", "bob@example.com")])
        .await;
    assert_eq!(
        granted.header("location"),
        "/links/mine/edit?done=granted#permissions"
    );
    let bob = world.session(BOB).await;
    assert_eq!(click(&world, "/mine", &bob).await.status, 302);
    let page = click(&world, "/links/mine/edit", &browser.token).await;
    assert!(page.body.contains("<td>bob@example.com</td>"));
    let unknown = browser
        .post(
            "/links/mine/permissions",
            &[("email", "<nobody>@example.com")],
        )
        .await;
    assert_eq!(unknown.status, 422);
    assert!(unknown.body.contains("id=\"email-error\"") && !unknown.body.contains("<nobody>"));
    let permission = page
        .body
        .split("name=\"permission\" value=\"")
        .nth(1)
        .unwrap();
    let permission = permission.split('"').next().unwrap();
    let revoked = browser
        .post(
            "/links/mine/permissions/revoke",
            &[("permission", permission)],
        )
        .await;
    assert_eq!(revoked.status, 303);
    assert_eq!(click(&world, "/mine", &bob).await.status, 403);
}

#[tokio::test]
async fn a_link_is_deleted_after_a_question_restored_and_switched() {
    let world = World::new().await;
    let browser = Browser::ada(&world).await;
    make(&world, json!({"alias": "one"})).await;
    let asked = browser.post("/links/one/delete", &[]).await;
    assert!(asked.body.contains("Delete the link “one”?"));
    assert_eq!(world.browse("/one").await.status, 302);
    let deleted = browser.post("/links/one/delete", &yes_in(&asked)).await;
    assert_eq!(deleted.header("location"), "/links?done=delete&n=1");
    assert_eq!(world.browse("/one").await.status, 410);
    let page = click(&world, "/links/one/edit", &browser.token).await;
    assert!(page.body.contains("This link is deleted") && !page.body.contains("name=\"target\""));
    assert_eq!(browser.post("/links/one/restore", &[]).await.status, 303);
    assert_eq!(world.browse("/one").await.status, 302);
    assert_eq!(
        browser
            .post("/links/one/switch", &[("to", "off")])
            .await
            .status,
        403
    );
    let root = Browser::of(&world, world.session(ROOT).await).await;
    assert_eq!(
        root.post("/links/one/switch", &[("to", "off")])
            .await
            .header("location"),
        "/links/one?done=disabled"
    );
    assert_eq!(world.browse("/one").await.status, 410);
    let page = click(&world, "/links/one", &browser.token).await;
    assert!(page.body.contains("Switched off"));
    assert_eq!(
        root.post("/links/one/switch", &[("to", "on")]).await.status,
        303
    );
    assert_eq!(world.browse("/one").await.status, 302);
}
