//! A whole installation on DynamoDB, over the real binary, which `make test` builds with that engine.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use curt_testkit::engines::dynamodb::{self, Server};
use curt_testkit::engines::unique;
use curt_testkit::need;
use curt_testkit::process::App;
use serde_json::json;

use super::life::{check_life_of_links, texts};
use super::plant::stop;
use crate::alone::Company;
use crate::api::Api;
use crate::durability::judge_kills;
use crate::length::length;
use crate::site::Site;

const READY_WITHIN: Duration = Duration::from_secs(120);

/// Settings of an installation of its own at the server.
pub(crate) fn settings(server: &Server) -> Vec<String> {
    vec![
        format!("store.links={}", server.url(&unique("server"))),
        // The machine may be busy.
        format!("dynamodb.connect_timeout={}", length("20s", "2s")),
        format!("dynamodb.background_timeout={}", length("20s", "6s")),
        format!("dynamodb.call_timeout={}", length("20s", "1500ms")),
    ]
}

#[test]
fn links_on_dynamodb_live_like_any_others() {
    let server = need!(dynamodb::shared());
    check_life_of_links(&settings(&server), "dynamodb", ": up to date");
}

#[test]
fn acknowledged_writes_to_dynamodb_survive_kill_9_l1() {
    let server = need!(dynamodb::shared());
    let site = Site::start_with_stores(&texts(&settings(&server)));
    judge_kills(site, length(1, 20), length(2_000..3_000, 1_500..4_000));
}

/// Whichever makes a table finds the other's, or waits for it.
#[test]
fn two_servers_that_make_the_tables_at_the_same_time_both_start_k1() {
    let _company = Company::join();
    let engine = need!(dynamodb::shared());
    let settings = settings(&engine);
    let apps = [0; 2].map(|_| {
        let app = App::new(env!("CARGO_BIN_EXE_curt")).unwrap();
        let set = |app: App, setting: &String| {
            let (key, value) = setting.split_once('=').unwrap();
            app.setting(key, value)
        };
        let app = settings
            .iter()
            .fold(app, set)
            .setting("server.drain_delay", "0s");
        app.ready_within(READY_WITHIN)
    });
    let start = Barrier::new(apps.len());
    let servers = thread::scope(|scope| {
        let starts = apps.each_ref().map(|app| {
            scope.spawn(|| {
                start.wait();
                app.start().unwrap()
            })
        });
        starts.map(|started| started.join().unwrap())
    });
    apps[0].run(&["user", "add", "tests@example.com"]).unwrap();
    let arguments = ["api-key", "add", "tests", "--user", "tests@example.com"];
    let token = apps[1].run(&arguments).unwrap();
    let mut apis = servers
        .each_ref()
        .map(|server| Api::new(server.http().unwrap(), token.trim()));
    let alias = json!({ "target": "https://example.com/first", "alias": "both" });
    let made = apis
        .each_mut()
        .map(|api| api.post("/api/v1/links", &alias).unwrap().status);
    assert_eq!(
        made,
        [201, 409],
        "K-1: the servers have tables of their own"
    );
    for api in &mut apis {
        assert_eq!(api.follow("both").unwrap().status, 302);
    }
    servers.into_iter().for_each(stop);
}
