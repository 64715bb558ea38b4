//! A server over an address with `sharding=engine`.

use std::time::Duration;

use curt_testkit::engines::postgres::shared;
use curt_testkit::need;
use curt_testkit::process::App;
use serde_json::json;

use super::plant::stop;
use crate::alone::Company;
use crate::api::{Api, bulk_results};

fn app(links: &str) -> App {
    App::new(env!("CARGO_BIN_EXE_curt"))
        .unwrap()
        .ready_within(Duration::from_secs(120))
        .setting("store.links", links)
        .setting("server.drain_delay", "0s")
        .setting("log.level", "error")
}

#[test]
fn a_server_runs_on_an_engine_that_routes_by_itself_and_keeps_accounts_elsewhere() {
    let _company = Company::join();
    let server = need!(shared());
    let (links, accounts) = (
        server.database("routed").unwrap(),
        server.database("accounts").unwrap(),
    );
    let url = links.url() + "?sharding=engine";
    let refused = app(&url).output(&["check"]).unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{said}");
    assert!(said.contains("sharding=engine serves links"), "{said}");

    let app = app(&url)
        .setting("store.accounts", accounts.url())
        .setting("store.clicks", accounts.url());
    app.run(&["migrate", "--new"]).unwrap();
    app.run(&["user", "add", "tests@example.com"]).unwrap();
    let token = app.run(&["api-key", "add", "tests", "--user", "tests@example.com"]);
    let curt = app.start().unwrap();
    let mut api = Api::new(curt.http().unwrap(), token.unwrap().trim());
    let targets: Vec<String> = (0..20)
        .map(|n| format!("https://example.com/{n}"))
        .collect();
    let keys = bulk_results(&api.bulk(&targets).unwrap());
    for (key, target) in keys.iter().zip(&targets) {
        let answer = api.follow(key).unwrap();
        assert_eq!(answer.header("location"), Some(&**target), "{answer:?}");
    }
    let edited = api.edit(&keys[0], &json!({ "target": "https://example.com/new" }));
    assert_eq!(edited.unwrap().status, 200);
    assert_eq!(api.delete(&keys[1]).unwrap().status, 204);
    let list = api.get("/api/v1/links?limit=100").unwrap().json();
    assert_eq!(list["links"].as_array().unwrap().len(), 19);
    assert_eq!(links.sql("select count(*) from links").unwrap(), "20");
    stop(curt);
}
