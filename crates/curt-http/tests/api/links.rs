//! The REST resource, from making a link to its end.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::World;

const DAY: Duration = Duration::from_secs(24 * 3_600);

#[tokio::test]
async fn a_link_is_made_read_followed_and_edited() {
    let world = World::new().await;
    let body = json!({
        "target": "https://example.com/a b?c=d",
        "alias": "spring-sale",
        "title": " Spring <sale> ",
        "tags": ["Mail", "spring sale"],
        "expires_at": "2030-06-01T02:00:00+02:00",
        "redirect_status": 307,
        "forward_query": true,
    });
    let made = world.call(Method::POST, "/api/v1/links", Some(body)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    assert_eq!(made.header("location"), "/api/v1/links/spring-sale");
    assert_eq!(made.header("etag"), "\"1.1\"");
    assert_eq!(
        made.json(),
        json!({
            "key": "spring-sale",
            "short_url": "https://sho.rt/spring-sale",
            "target": "https://example.com/a%20b?c=d",
            "is_alias": true,
            "title": "Spring <sale>",
            "tags": ["mail", "spring-sale"],
            "state": "active",
            "created_at": "2026-01-01T00:00:00.000Z",
            "updated_at": "2026-01-01T00:00:00.000Z",
            "expires_at": "2030-06-01T00:00:00.000Z",
            "valid_since": null,
            "redirect_status": 307,
            "forward_query": true,
            "visibility": "public",
            "max_clicks": null,
            "clicks": 0,
            "owner_id": "1",
            "revision": "1.1",
        })
    );

    let path = made.header("location").to_owned();
    let read = world.call(Method::GET, &path, None).await;
    assert_eq!((&read.body, read.header("etag")), (&made.body, "\"1.1\""));

    let click = world.call(Method::GET, "/spring-sale?e=f", None).await;
    assert_eq!(click.status, 307);
    assert_eq!(
        click.header("location"),
        "https://example.com/a%20b?c=d&e=f"
    );
    assert_eq!(click.header("x-robots-tag"), "noindex");

    world.clock.advance(std::time::Duration::from_secs(1));
    let edit = json!({"target": "https://example.org/", "title": null, "tags": null, "expires_at": null,
        "redirect_status": 302, "forward_query": false});
    let edited = world.call(Method::PATCH, &path, Some(edit)).await;
    assert_eq!(edited.status, 200, "{}", edited.body);
    assert_eq!(edited.header("etag"), "\"1.2\"");
    let now = edited.json();
    assert_eq!(now["target"], "https://example.org/");
    assert_eq!((&now["title"], &now["tags"]), (&Value::Null, &json!([])));
    assert_eq!(now["expires_at"], Value::Null);
    assert_eq!(now["created_at"], "2026-01-01T00:00:00.000Z");
    assert_eq!(now["updated_at"], "2026-01-01T00:00:01.000Z");
    let click = world.call(Method::GET, "/spring-sale?e=f", None).await;
    assert_eq!(
        (click.status.as_u16(), click.header("location")),
        (302, "https://example.org/")
    );
}

#[tokio::test]
async fn a_deleted_link_is_gone_and_its_alias_stays_taken() {
    let world = World::new().await;
    world.link("spring-sale").await;
    let path = "/api/v1/links/spring-sale";
    let deleted = world.call(Method::DELETE, path, None).await;
    assert_eq!((deleted.status.as_u16(), deleted.body.as_str()), (204, ""));
    let click = world.call(Method::GET, "/spring-sale", None).await;
    assert_eq!(
        (click.status.as_u16(), click.problem().as_str()),
        (410, "link-gone")
    );
    let seen = world.call(Method::GET, path, None).await.json();
    assert_eq!(seen["state"], "deleted");
    let again = world.call(Method::DELETE, path, None).await;
    assert_eq!(
        (again.status.as_u16(), again.problem().as_str()),
        (410, "link-gone")
    );
    let again = json!({"target": "https://example.com/", "alias": "spring-sale"});
    let again = world.call(Method::POST, "/api/v1/links", Some(again)).await;
    assert_eq!(
        (again.status.as_u16(), again.problem().as_str()),
        (409, "alias-taken")
    );
    world.purge("spring-sale").await;
    assert_eq!(
        world.call(Method::GET, path, None).await.problem(),
        "link-not-found"
    );
}

/// The whole life of a link, as its owner sees it.
#[tokio::test]
async fn a_link_tells_its_state_and_is_restored() {
    let world = World::new().await;
    let body = json!({"target": "https://example.com/", "alias": "a", "title": "kept", "tags": ["x"],
        "valid_since": "2026-01-02T00:00:00Z", "expires_at": "2026-01-04T00:00:00Z"});
    let made = world.call(Method::POST, "/api/v1/links", Some(body)).await;
    assert_eq!(made.json()["state"], "scheduled");
    let path = "/api/v1/links/a";
    let state = async || world.call(Method::GET, path, None).await.json()["state"].clone();
    let listed = async |query: &str| {
        let path = format!("/api/v1/links{query}");
        let page = world.call(Method::GET, &path, None).await.json();
        page["links"].as_array().unwrap().len()
    };
    world.clock.advance(DAY);
    assert_eq!(state().await, "active");
    world.clock.advance(DAY * 3);
    assert_eq!(state().await, "expired");
    assert_eq!((listed("").await, listed("?state=expired").await), (1, 1));
    let taken = json!({"target": "https://example.com/", "alias": "a"});
    let taken = world.call(Method::POST, "/api/v1/links", Some(taken)).await;
    assert!(
        taken.json()["detail"]
            .as_str()
            .unwrap()
            .contains("Renew it"),
        "{}",
        taken.body
    );

    let deleted = world.call(Method::DELETE, path, None).await;
    assert_eq!(deleted.status, 204);
    assert_eq!(state().await, "deleted");
    assert_eq!((listed("").await, listed("?state=deleted").await), (0, 1));
    let edit = world
        .call(Method::PATCH, path, Some(json!({"title": "t"})))
        .await;
    assert_eq!(
        (edit.status.as_u16(), edit.problem().as_str()),
        (410, "link-gone")
    );

    let restore = "/api/v1/links/a/restore";
    let stale = world
        .call_raw(Method::POST, restore, &[("if-match", "\"1.1\"")], None)
        .await;
    assert_eq!(stale.status, 412);
    let restored = world.call(Method::POST, restore, None).await;
    let link = restored.json();
    assert_eq!(restored.header("etag"), "\"1.3\"");
    assert_eq!(
        (&link["state"], &link["title"], &link["tags"]),
        (&json!("active"), &json!("kept"), &json!(["x"]))
    );
    assert_eq!(
        link["expires_at"], "2028-01-05T00:00:00.000Z",
        "the default life"
    );
    let never = json!({"expires_at": null});
    let never = world.call(Method::POST, restore, Some(never)).await.json();
    assert_eq!(never["expires_at"], Value::Null);
    let click = world.call(Method::GET, "/a", None).await;
    assert_eq!(click.status, 302);
}

#[tokio::test]
async fn a_link_whose_clicks_are_used_up_is_exhausted() {
    let world = World::new().await;
    let body = json!({"target": "https://example.com/", "alias": "a", "max_clicks": 1});
    let made = world.call(Method::POST, "/api/v1/links", Some(body)).await;
    assert_eq!(made.json()["state"], "active");
    let browser = [(
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    )];
    let click = world.call_raw(Method::GET, "/a", &browser, None).await;
    assert_eq!(click.status, 302, "{}", click.body);
    let path = "/api/v1/links/a";
    let link = world.call(Method::GET, path, None).await.json();
    assert_eq!(link["state"], "exhausted");
    let page = world
        .call(Method::GET, "/api/v1/links?state=exhausted", None)
        .await;
    assert_eq!(page.json()["links"][0]["state"], "exhausted");
    let more = world
        .call(Method::PATCH, path, Some(json!({"max_clicks": 2})))
        .await;
    assert_eq!(more.json()["state"], "active");
}

#[tokio::test]
async fn absent_fields_get_the_defaults_and_null_means_never() {
    let world = World::new().await;
    let body = json!({"target": "https://example.com/"});
    let made = world
        .call(Method::POST, "/api/v1/links", Some(body))
        .await
        .json();
    assert_eq!(made["expires_at"], "2028-01-01T00:00:00.000Z", "two years");
    assert_eq!(
        (&made["is_alias"], &made["redirect_status"]),
        (&json!(false), &json!(302))
    );
    assert_eq!(made["key"].as_str().unwrap().len(), 7);
    let body = json!({"target": "https://example.com/", "expires_at": null, "alias": null, "title": null,
        "tags": null, "valid_since": null, "redirect_status": null, "forward_query": null});
    let made = world.call(Method::POST, "/api/v1/links", Some(body)).await;
    assert_eq!(made.json()["expires_at"], Value::Null, "{}", made.body);
}

#[tokio::test]
async fn an_edit_refuses_null_where_nothing_can_be_cleared() {
    let world = World::new().await;
    world.link("abc").await;
    for field in ["target", "redirect_status", "forward_query"] {
        let answer = world
            .call(
                Method::PATCH,
                "/api/v1/links/abc",
                Some(json!({field: null})),
            )
            .await;
        assert_eq!(answer.problem(), "invalid-input");
        assert_eq!(answer.refused(), format!("{field}/type"));
    }
    let answer = world
        .call(
            Method::PATCH,
            "/api/v1/links/abc",
            Some(json!({"alias": "other"})),
        )
        .await;
    assert_eq!(answer.refused(), "alias/unknown");
}

#[tokio::test]
async fn time_decides_what_visitors_get() {
    let world = World::new().await;
    let body = json!({"target": "https://example.com/", "alias": "window",
        "valid_since": "2026-01-02T00:00:00Z", "expires_at": "2026-01-03T00:00:00Z"});
    let made = world.call(Method::POST, "/api/v1/links", Some(body)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    for (hours, status) in [(0, 404), (24, 302), (24, 410)] {
        world
            .clock
            .advance(std::time::Duration::from_secs(hours * 3_600));
        let click = world.call(Method::GET, "/window", None).await;
        assert_eq!(click.status.as_u16(), status);
        assert!(click.header("cache-control").contains("no-store"));
    }
}

#[tokio::test]
async fn a_bulk_request_tells_what_became_of_each_link() {
    let world = World::new().await;
    world.link("taken").await;
    let body = json!({"links": [
        {"target": "https://example.com/1"},
        {"target": "https://example.com/2", "alias": "taken"},
        {"target": "ftp://example.com/3"},
        {"target": "https://example.com/4", "alias": "four"},
    ]});
    let answer = world
        .call(Method::POST, "/api/v1/links/bulk", Some(body))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let body = answer.json();
    assert_eq!((&body["created"], &body["failed"]), (&json!(2), &json!(2)));
    let results = body["results"].as_array().unwrap();
    let statuses: Vec<_> = results
        .iter()
        .map(|result| result["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [201, 409, 422, 201]);
    assert_eq!(results[1]["problem"]["code"], "alias-taken");
    assert_eq!(results[2]["problem"]["errors"][0]["code"], "target_scheme");
    assert_eq!(results[3]["link"]["short_url"], "https://sho.rt/four");
    let click = world.call(Method::GET, "/four", None).await;
    assert_eq!(click.header("location"), "https://example.com/4");
}

/// `key-0` to `key-4`, a minute apart.
async fn five_links() -> World {
    let world = World::new().await;
    for number in 0..5 {
        world.clock.advance(std::time::Duration::from_secs(60));
        let body = json!({"target": format!("https://example.com/{number}"), "alias": format!("key-{number}"),
            "tags": [if number % 2 == 0 { "even" } else { "odd" }, "all"]});
        assert_eq!(
            world
                .call(Method::POST, "/api/v1/links", Some(body))
                .await
                .status,
            201
        );
    }
    world
}

#[tokio::test]
async fn a_list_goes_on_page_by_page() {
    let world = five_links().await;
    let mut path = "/api/v1/links?tag=all&limit=2".to_owned();
    let mut keys = Vec::new();
    loop {
        let page = world.call(Method::GET, &path, None).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let body = page.json();
        let links = body["links"].as_array().unwrap();
        assert!(links.len() <= 2);
        keys.extend(
            links
                .iter()
                .map(|link| link["key"].as_str().unwrap().to_owned()),
        );
        match page.header("link").strip_prefix('<') {
            Some(next) => {
                let (address, rest) = next.split_once('>').unwrap();
                assert_eq!(rest, "; rel=\"next\"");
                assert!(body["next"].is_string());
                path = address.to_owned();
            }
            None => {
                assert_eq!(body["next"], Value::Null);
                break;
            }
        }
    }
    assert_eq!(keys, ["key-4", "key-3", "key-2", "key-1", "key-0"]);
}

#[tokio::test]
async fn a_list_shows_ones_own_links_in_order_and_filtered() {
    let world = five_links().await;
    for (query, wanted) in [
        ("order=oldest&limit=1", vec!["key-0"]),
        ("order=-key&limit=1", vec!["key-4"]),
        (
            "order=key&tag=even&tag=all",
            vec!["key-0", "key-2", "key-4"],
        ),
        ("search=EXAMPLE.COM/3", vec!["key-3"]),
        ("search=nothing", vec![]),
        ("state=disabled", vec![]),
        ("created_from=2026-01-01T00:05:00Z", vec!["key-4"]),
        ("created_before=2026-01-01T00:02:00Z", vec!["key-0"]),
        ("expires_before=2027-01-01T00:00:00Z", vec![]),
    ] {
        let page = world
            .call(Method::GET, &format!("/api/v1/links?{query}"), None)
            .await;
        let keys: Vec<_> = page.json()["links"]
            .as_array()
            .unwrap()
            .iter()
            .map(|link| link["key"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(keys, wanted, "{query}");
    }
    let page = world
        .call_raw(
            Method::GET,
            "/api/v1/links",
            &[("authorization", &format!("Bearer {}", world.stranger))],
            None,
        )
        .await;
    assert_eq!(
        page.json()["links"],
        json!([]),
        "H14: nobody sees the links of others"
    );
}
