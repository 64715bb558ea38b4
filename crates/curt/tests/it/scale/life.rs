//! The life of links, over the real binary, whatever engine keeps them.

use serde_json::json;

use crate::site::Site;

pub(super) fn texts(settings: &[String]) -> Vec<&str> {
    settings.iter().map(String::as_str).collect()
}

/// Creates, edits and deletes links, follows and lists them, before and after a restart, and asks the commands for what
/// they say about the engine and its tables.
pub(super) fn check_life_of_links(settings: &[String], engine: &str, up_to_date: &str) {
    let mut site = Site::start_with_stores(&texts(settings));
    let mut api = site.api();
    let answer = api.create("https://example.com/made").unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    let made = answer.json()["key"].as_str().unwrap().to_owned();
    let alias = json!({ "target": "https://example.com/alias", "alias": "my-alias" });
    assert_eq!(api.post("/api/v1/links", &alias).unwrap().status, 201);
    let taken = json!({ "target": "https://example.com/other", "alias": "my-alias" });
    assert_eq!(api.post("/api/v1/links", &taken).unwrap().status, 409);
    let edit = json!({ "target": "https://example.com/edited" });
    assert_eq!(api.edit(&made, &edit).unwrap().status, 200);
    let answer = api.create("https://example.com/deleted").unwrap();
    let deleted = answer.json()["key"].as_str().unwrap().to_owned();
    assert_eq!(api.delete(&deleted).unwrap().status, 204);
    let once = |api: &mut crate::api::Api| {
        let answer = api
            .create_once("https://example.com/once", "a-name")
            .unwrap();
        answer.json()["key"].as_str().unwrap().to_owned()
    };
    let first = once(&mut api);

    for round in ["before", "after a restart"] {
        let mut api = site.api();
        let mut leads_to = |key: &str| {
            let answer = api.follow(key).unwrap();
            (answer.status, answer.header("location").map(str::to_owned))
        };
        let found = |target: &str| (302, Some(format!("https://example.com/{target}")));
        assert_eq!(leads_to(&made), found("edited"), "{round}");
        assert_eq!(leads_to("my-alias"), found("alias"), "{round}");
        assert_eq!(leads_to(&deleted).0, 410, "{round}");
        assert_eq!(leads_to("never-made").0, 404, "{round}");
        assert_eq!(once(&mut api), first, "{round}: the same request");
        let listed = api.get("/api/v1/links").unwrap().json();
        assert_eq!(listed["links"].as_array().unwrap().len(), 3, "{listed}");
        if round == "before" {
            site.terminate();
            site.restart();
        }
    }
    for (command, told) in [
        (["migrate", "--dry-run"], up_to_date),
        (["check", "--reach"], engine),
    ] {
        let output = site.output(&command);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(told), "{output:?}");
    }
}
