//! B3: `createURL` and `deleteURL` as they were written down.

use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};

use crate::harness::{Answer, World};

const CREATE: &str = "/api/v1/createURL";
const DELETE: &str = "/api/v1/deleteURL";

/// The parameters in the query, as a form, and as JSON.
async fn three_ways(
    world: &World,
    method: Method,
    path: &str,
    parameters: &[(&str, &str)],
) -> [Answer; 3] {
    let encoded = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish();
    let object: serde_json::Map<_, _> = parameters
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    let request = |path: &str| Request::builder().method(method.clone()).uri(path);
    let form = "application/x-www-form-urlencoded";
    [
        request(&format!("{path}?{encoded}")).body(Body::empty()),
        request(path)
            .header("content-type", form)
            .body(Body::from(encoded)),
        request(path)
            .header("content-type", "application/json")
            .body(Body::from(Value::Object(object).to_string())),
    ]
    .map(|request| world.send(request.unwrap()))
    .into_answers()
    .await
}

trait IntoAnswers {
    async fn into_answers(self) -> [Answer; 3];
}

impl<F: Future<Output = Answer>> IntoAnswers for [F; 3] {
    async fn into_answers(self) -> [Answer; 3] {
        let [first, second, third] = self;
        [first.await, second.await, third.await]
    }
}

#[tokio::test]
async fn create_answers_the_bare_short_url() {
    let world = World::new().await;
    let parameters = [
        ("api_dev_key", world.key.as_str()),
        ("original_url", "https://example.com/a?b=c&d=%20"),
    ];
    for answer in three_ways(&world, Method::POST, CREATE, &parameters).await {
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        let key = answer.body.strip_prefix("https://sho.rt/").unwrap();
        let click = world.call(Method::GET, &format!("/{key}"), None).await;
        assert_eq!(
            (click.status.as_u16(), click.header("location")),
            (302, "https://example.com/a?b=c&d=%20")
        );
    }
}

#[tokio::test]
async fn create_answers_json_to_those_who_ask_for_it() {
    let world = World::new().await;
    let body = json!({"original_url": "https://example.com/", "custom_alias": "abc", "user_name": "Ada",
        "expire_date": "2026-12-31"});
    let headers = [("accept", "application/json")];
    let answer = world
        .call_raw(Method::POST, CREATE, &headers, Some(&body.to_string()))
        .await;
    assert_eq!(answer.json(), json!({"short_url": "https://sho.rt/abc"}));
    let link = world
        .call(Method::GET, "/api/v1/links/abc", None)
        .await
        .json();
    assert_eq!(
        link["expires_at"], "2027-01-01T00:00:00.000Z",
        "the whole last day"
    );
    assert_eq!(link["tags"], json!(["user:ada"]));
    let listed = world
        .call(Method::GET, "/api/v1/links?tag=user:ada", None)
        .await
        .json();
    assert_eq!(listed["links"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn none_may_be_left_out_empty_or_null() {
    let world = World::new().await;
    for rest in [
        json!({}),
        json!({"custom_alias": null, "user_name": null, "expire_date": null, "api_dev_key": null}),
        json!({"custom_alias": "", "user_name": "", "expire_date": "", "api_dev_key": ""}),
    ] {
        let mut body = json!({"original_url": "https://example.com/"});
        body.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        let answer = world.call(Method::POST, CREATE, Some(body.clone())).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.body);
    }
}

#[rustfmt::skip]
#[tokio::test]
async fn bad_parameters_are_named_as_they_were_given() {
    let world = World::new().await;
    world.link("taken").await;
    let url = ("original_url", "https://a.example/");
    let long = "n".repeat(60);
    for (first, second, status, refused) in [
        (("user_name", "a"), ("user_name", "a"), 422, "original_url/missing"),
        (("original_url", ""), ("user_name", "a"), 422, "original_url/missing"),
        (("original_url", "ftp://a.example/"), ("user_name", "a"), 422, "original_url/target_scheme"),
        (("original_url", "https://sho.rt/x"), ("user_name", "a"), 422, "original_url/target_own_host"),
        (url, ("custom_alias", "api"), 422, "custom_alias/alias_reserved"),
        (url, ("custom_alias", "taken"), 409, "/"),
        (url, ("user_name", long.as_str()), 422, "user_name/length"),
        (url, ("user_name", "a,b"), 422, "user_name/tag_symbols"),
        (url, ("expire_date", "31.12.2030"), 422, "expire_date/time"),
        (url, ("expire_date", "2025-01-01"), 422, "expire_date/expiry_past"),
        (url, ("url", "x"), 422, "url/unknown"),
    ] {
        let mut parameters = vec![("api_dev_key", world.key.as_str()), first];
        parameters.extend((first != second).then_some(second));
        for answer in three_ways(&world, Method::POST, CREATE, &parameters).await {
            assert_eq!(
                answer.status.as_u16(),
                status,
                "{parameters:?}: {}",
                answer.body
            );
            answer.problem();
            assert_eq!(answer.refused(), refused, "{parameters:?}");
        }
    }
}

#[tokio::test]
async fn malformed_parameters_are_refused_before_anything_else() {
    let world = World::new().await;
    let twice = format!("{CREATE}?original_url=https://a.example/&original_url=https://b.example/");
    assert_eq!(
        world.call(Method::POST, &twice, None).await.refused(),
        "original_url/duplicate"
    );
    let headers = [("content-type", "text/plain")];
    let answer = world
        .call_raw(Method::POST, CREATE, &headers, Some("original_url=x"))
        .await;
    assert_eq!(answer.problem(), "unsupported-media-type");
    let answer = world.call_raw(Method::POST, CREATE, &[], Some("{")).await;
    assert_eq!(answer.problem(), "malformed-json");
}

#[tokio::test]
async fn delete_answers_success_once() {
    let world = World::new().await;
    for alias in ["one", "two", "three"] {
        world.link(alias).await;
    }
    let world = &world;
    let delete = |key: &'static str| {
        let parameters = [("api_dev_key", world.key.as_str()), ("url_key", key)];
        async move { three_ways(world, Method::DELETE, DELETE, &parameters).await }
    };
    for key in ["one", "https://sho.rt/two"] {
        let [first, second, third] = delete(key).await;
        assert_eq!(
            (first.status.as_u16(), first.body.as_str()),
            (200, "SUCCESS")
        );
        assert_eq!(first.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(
            (second.problem(), third.problem()),
            ("link-not-found".into(), "link-not-found".into())
        );
    }
    assert_eq!(world.call(Method::GET, "/one", None).await.status, 410);
    assert_eq!(world.call(Method::GET, "/two", None).await.status, 410);
    assert_eq!(world.call(Method::GET, "/three", None).await.status, 302);
    let missing = world.call(Method::DELETE, DELETE, None).await;
    assert_eq!(missing.refused(), "url_key/missing");
}
