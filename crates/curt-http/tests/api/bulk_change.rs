//! One change to many links, and links as a file.

use http::Method;
use serde_json::{Value, json};

use crate::harness::{ADA, Answer, BOB, ROOT, World};
use curt_core::Scope;

async fn change(world: &World, body: Value) -> Answer {
    world
        .call(Method::PATCH, "/api/v1/links/bulk", Some(body))
        .await
}

async fn tags_of(world: &World, key: &str) -> Value {
    let path = format!("/api/v1/links/{key}");
    world.call(Method::GET, &path, None).await.json()["tags"].clone()
}

/// The newest entries of the audit log: action and subject.
async fn newest_entries(world: &World, limit: usize) -> Vec<(String, String)> {
    let entries = world.accounts.audit.list(None, limit).await.unwrap();
    entries
        .iter()
        .map(|entry| (entry.1.action.to_string(), entry.1.subject.to_string()))
        .collect()
}

#[tokio::test]
async fn one_link_that_is_deleted_or_restored_is_in_the_audit_log_as_one_of_many() {
    let world = World::new().await;
    for alias in ["one", "two"] {
        world.link(alias).await;
    }
    let call = |method, path: &'static str| world.call(method, path, None);
    let deleted = call(Method::DELETE, "/api/v1/links/one").await;
    assert_eq!(deleted.status, 204, "{}", deleted.body);
    let restored = call(Method::POST, "/api/v1/links/one/restore").await;
    assert_eq!(restored.status, 200, "{}", restored.body);
    let deleted = call(Method::DELETE, "/api/v1/deleteURL?url_key=two").await;
    assert_eq!(deleted.status, 200, "{}", deleted.body);
    let refused = call(Method::DELETE, "/api/v1/links/nope").await;
    assert_eq!(refused.status, 404, "what was not done is not told");
    let entries = newest_entries(&world, 3).await;
    let expected = [
        ("links_deleted", "1 deleted: two"),
        ("links_changed", "1 restored: one"),
        ("links_deleted", "1 deleted: one"),
    ];
    let told = entries
        .iter()
        .map(|(action, subject)| (&**action, &**subject));
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn each_link_is_changed_or_says_why_not() {
    let world = World::new().await;
    for alias in ["one", "two"] {
        world.link(alias).await;
    }
    let keys = json!(["one", "nope", "two"]);
    let body = json!({"keys": keys, "change": "tag", "add_tags": ["Spring Sale", "mail"]});
    let done = change(&world, body).await;
    assert_eq!(done.status, 200, "{}", done.body);
    let told = done.json();
    assert_eq!((&told["changed"], &told["failed"]), (&json!(2), &json!(1)));
    assert_eq!(told["results"][1]["status"], 404);
    assert_eq!(told["results"][1]["problem"]["code"], "link-not-found");
    assert_eq!(
        told["results"][2],
        json!({"key": "two", "status": 200, "problem": null})
    );
    assert_eq!(tags_of(&world, "one").await, json!(["spring-sale", "mail"]));
    let (action, subject) = newest_entries(&world, 1).await.remove(0);
    assert_eq!(
        (action.as_str(), subject.as_str()),
        ("links_changed", "2 tagged: one two")
    );

    let body = json!({"keys": ["two"], "change": "tag", "remove_tags": ["MAIL", "other"], "add_tags": ["x"]});
    assert_eq!(change(&world, body).await.json()["changed"], 1);
    assert_eq!(tags_of(&world, "two").await, json!(["spring-sale", "x"]));

    let body = json!({"keys": ["one"], "change": "expire", "expires_at": "2026-02-01T00:00:00Z"});
    assert_eq!(change(&world, body).await.json()["changed"], 1);
    let body = json!({"keys": ["one"], "change": "expire", "expires_at": "2025-02-01T00:00:00Z"});
    let refused = change(&world, body).await.json();
    assert_eq!(
        refused["results"][0]["problem"]["errors"][0]["code"],
        "expiry_past"
    );

    let body = json!({"keys": ["one", "two"], "change": "delete"});
    assert_eq!(change(&world, body).await.json()["changed"], 2);
    assert_eq!(newest_entries(&world, 1).await[0].0, "links_deleted");
    let body = json!({"keys": ["one", "two"], "change": "delete"});
    let again = change(&world, body).await.json();
    assert_eq!(again["results"][0]["problem"]["code"], "link-gone");
    let body = json!({"keys": ["one", "two"], "change": "restore"});
    assert_eq!(change(&world, body).await.json()["changed"], 2);
}

#[tokio::test]
async fn what_goes_with_another_change_is_refused() {
    let world = World::new().await;
    world.link("one").await;
    for (more, refused) in [
        (json!({"change": "tag"}), "add_tags/missing"),
        (json!({"change": "expire"}), "expires_at/missing"),
        (
            json!({"change": "delete", "add_tags": []}),
            "add_tags/unused",
        ),
        (
            json!({"change": "tag", "add_tags": ["a"], "expires_at": null}),
            "expires_at/unused",
        ),
        (json!({"change": "burn"}), "change/type"),
    ] {
        let mut body = more;
        body["keys"] = json!(["one"]);
        let answer = change(&world, body.clone()).await;
        assert_eq!(answer.status, 422, "{body}");
        assert_eq!(answer.refused(), refused, "{body}");
    }
    let many: Vec<String> = (0..501).map(|at| format!("k{at}")).collect();
    let answer = change(&world, json!({"keys": many, "change": "delete"})).await;
    assert_eq!(answer.status, 422);
    let none = change(&world, json!({"keys": [], "change": "delete"})).await;
    assert_eq!(none.status, 422);
}

/// Somebody else's link is like one that is not there, and administrators reach all.
#[tokio::test]
async fn nobody_changes_what_is_not_theirs() {
    let world = World::new().await;
    world.link("one").await;
    let body = json!({"keys": ["one"], "change": "delete"}).to_string();
    let as_user = async |key: String, body: &str| {
        let headers = [
            ("x-api-key", key.as_str()),
            ("content-type", "application/json"),
        ];
        let mut request = http::Request::patch("/api/v1/links/bulk");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        world
            .send(request.body(body.to_owned().into()).unwrap())
            .await
    };
    let stranger = as_user(world.key_for(BOB, "b", &[Scope::Manage]).await, &body).await;
    assert_eq!(stranger.json()["results"][0]["status"], 404);
    let off = json!({"keys": ["one"], "change": "disable"}).to_string();
    let owner = as_user(world.key_for(ADA, "a", &[Scope::Manage]).await, &off).await;
    assert_eq!(owner.problem(), "scope-missing");
    let admin = as_user(world.key_for(ROOT, "r", &Scope::ALL).await, &off).await;
    assert_eq!(admin.json()["changed"], 1);
    assert_eq!(world.browse("/one").await.status, 410);
}

#[tokio::test]
async fn links_are_downloaded_whole() {
    let world = World::new().await;
    for number in 100..550 {
        world.link(&format!("link{number}")).await;
    }
    world.clock.advance(std::time::Duration::from_secs(1));
    let body = json!({"target": "https://example.com/?a=1,2", "alias": "hostile", "title": "=HYPERLINK(\"x\")", "tags": ["b", "a"]});
    world.call(Method::POST, "/api/v1/links", Some(body)).await;
    let file = world
        .call(Method::GET, "/api/v1/links.csv?order=oldest", None)
        .await;
    assert_eq!(file.status, 200);
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
    assert!(file.header("content-disposition").contains("links.csv"));
    let lines: Vec<&str> = file.body.lines().collect();
    assert_eq!(
        lines.len(),
        452,
        "a head and every link, over several pages"
    );
    assert!(lines[0].starts_with("key,short_url,target,title,tags,state,"));
    assert!(lines[1].starts_with(
        "link100,https://sho.rt/link100,https://example.com/x,,,active,public,0,,2026-01-01T"
    ));
    let hostile = lines[451];
    assert!(
        hostile.contains("\"'=HYPERLINK(\"\"x\"\")\",b a,active"),
        "{hostile}"
    );
    let some = world
        .call(Method::GET, "/api/v1/links.csv?tag=a", None)
        .await;
    assert_eq!(some.body.lines().count(), 2);
    for query in ["limit=5", "cursor=x", "order=clicks", "state=gone"] {
        let path = format!("/api/v1/links.csv?{query}");
        assert_eq!(
            world.call(Method::GET, &path, None).await.status,
            422,
            "{query}"
        );
    }
}
