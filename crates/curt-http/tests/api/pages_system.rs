//! Blocklist, system and planner, as administrators see them.

use std::sync::Arc;

use async_trait::async_trait;
use curt_http::{InstanceStatus, ProcessStatus, StoreStatus, SystemSource};
use curt_links::Blocklist;
use http::Method;
use prometheus_client::registry::Registry;
use serde_json::json;

use crate::harness::{ROOT, World};
use crate::pages_account::yes_in;
use crate::pages_admin::{api, location, root};
use crate::pages_forms::{click, csrf_in};

#[tokio::test]
async fn links_are_switched_off_and_targets_looked_up() {
    let world = World::new().await;
    world.link("mine").await;
    world
        .app
        .policy
        .block(Blocklist::parse(b"bad.example\n").unwrap());
    let root = root(&world).await;
    for (target, answer) in [
        ("https://bad.example/x", "is blocked"),
        ("bad.example", "is blocked"),
        ("https://good.example/", "is not blocked"),
    ] {
        let target: String = url::form_urlencoded::byte_serialize(target.as_bytes()).collect();
        let page = click(
            &world,
            &format!("/admin/blocklist?target={target}"),
            &root.token,
        )
        .await;
        assert!(page.body.contains(answer), "{target}");
        assert!(page.body.contains("1 host or pattern is blocked"));
    }
    let asked = api(
        &world,
        Method::GET,
        "/api/v1/blocklist?target=https://bad.example/",
    )
    .await;
    assert_eq!(asked.json(), json!({"entries": 1, "blocked": true}));
    let typed = [("key", "https://sho.rt/mine"), ("state", "disabled")];
    let asked = root.post("/admin/blocklist/switch", &typed).await;
    assert_eq!(asked.status, 200);
    assert_eq!(world.browse("/mine").await.status, 302);
    let done = root.post("/admin/blocklist/switch", &yes_in(&asked)).await;
    assert_eq!(
        location(&done),
        (303, "/admin/blocklist?done=link-disabled")
    );
    assert_eq!(world.browse("/mine").await.status, 410);
    let page = click(&world, "/admin/blocklist", &root.token).await;
    assert!(page.body.contains("Switch mine on"));
    let on = [("key", "mine"), ("state", "active")];
    root.post("/admin/blocklist/switch", &on).await;
    assert_eq!(world.browse("/mine").await.status, 302);
    let absent = root
        .post("/admin/blocklist/switch", &[("key", "nope")])
        .await;
    assert_eq!(absent.status, 404);
}

struct TwoEngines;

#[async_trait]
impl ProcessStatus for TwoEngines {
    fn roles(&self) -> &str {
        "redirect, api"
    }

    async fn stores(&self) -> Vec<StoreStatus> {
        let store = |address: &str, failure: Option<&str>| StoreStatus {
            address: address.to_owned(),
            failure: failure.map(str::to_owned),
        };
        vec![
            store("sqlite:curt.db", None),
            store("redis://r", Some("refused")),
        ]
    }

    async fn instances(&self) -> Vec<InstanceStatus> {
        vec![InstanceStatus {
            name: "one".to_owned(),
            about: "api on host".to_owned(),
            buffered: 800,
            conflicts: 0,
            fallbacks: 3,
        }]
    }
}

#[tokio::test]
async fn the_system_page_says_what_the_api_says() {
    let world = World::new().await;
    world
        .ready
        .fail("clicks", curt_http::Impact::Degraded, "the disk is full");
    let mut registry = Registry::default();
    let metrics = curt_http::HttpMetrics::register(&mut registry);
    metrics.requests_shed.inc_by(7);
    let source = SystemSource::new(Arc::new(TwoEngines), Arc::new(registry));
    assert!(world.app.system.set(source).is_ok());
    let told = api(&world, Method::GET, "/api/v1/system").await.json();
    assert_eq!(told["roles"], "redirect, api");
    assert_eq!(
        told["stores"][1],
        json!({"address": "redis://r", "failure": "refused"})
    );
    assert_eq!(told["checks"][0]["reason"], "the disk is full");
    let groups = told["figures"].as_array().unwrap();
    let requests = groups
        .iter()
        .find(|group| group["name"] == "requests")
        .unwrap();
    let shed = json!({"metric": "curt_http_requests_shed_total", "labels": "", "value": 7.0});
    assert!(
        requests["figures"].as_array().unwrap().contains(&shed),
        "{requests}"
    );
    let page = click(&world, "/admin/system", &world.session(ROOT).await).await;
    for text in [
        "redirect, api",
        "redis://r",
        "refused",
        "the disk is full",
        "api on host",
        "<th scope=\"row\">http requests shed</th><td>7</td>",
    ] {
        assert!(page.body.contains(text), "{text}: {}", page.body);
    }
}

#[tokio::test]
async fn plans_are_worked_out_and_documents_checked() {
    let world = World::new().await;
    let token = world.session(ROOT).await;
    let page = click(
        &world,
        "/admin/plan?writes_per_month=500M&reads_per_write=",
        &token,
    )
    .await;
    assert!(
        page.body.contains("<svg class=\"picture\"") && page.body.contains("length = 8"),
        "{}",
        page.body
    );
    let wrong = click(&world, "/admin/plan?years=0&cores=many", &token).await;
    assert_eq!(wrong.status, 422);
    assert!(wrong.body.contains("id=\"cores-error\""));
    for (seed, mistakes) in [("A", 5), ("B", 6), ("C", 3), ("D", 0)] {
        let page = click(&world, &format!("/admin/plan?seed={seed}"), &token).await;
        assert_eq!(
            page.body.matches(">wrong</strong>").count(),
            mistakes,
            "{seed}"
        );
        let told = api(&world, Method::GET, &format!("/api/v1/plan?seed={seed}"))
            .await
            .json();
        let figures = told["figures"].as_array().unwrap();
        let wrong = figures.iter().filter(|figure| figure["verdict"] == "wrong");
        assert_eq!(wrong.count(), mistakes, "{seed}");
    }
    for (query, refused) in [
        ("years=0", "years/range"),
        ("years=1&years=1", "years/duplicate"),
        ("cores=x", "cores/value"),
        ("seed=E", "seed/value"),
        ("colour=1", "colour/unknown"),
    ] {
        let answer = api(&world, Method::GET, &format!("/api/v1/plan?{query}")).await;
        assert_eq!(answer.refused(), refused);
    }
    assert!(
        csrf_in(&page).len() == 64,
        "pages of administrators hold the token"
    );
}
