//! Starts without engines, and several first starts at once.

use std::thread;
use std::time::Duration;

use curt_testkit::engines::postgres;
use curt_testkit::http::Client;
use curt_testkit::need;
use curt_testkit::process::{App, Server};

use super::health::wait_for_status;
use crate::alone::Company;
use crate::api::Api;
use crate::length::length;
use crate::wait::eventually;

const SHOWN_WITHIN: Duration = Duration::from_secs(60);
const SERVERS: usize = 3;

fn app(links: &str) -> App {
    App::new(env!("CARGO_BIN_EXE_curt"))
        .unwrap()
        .ready_within(Duration::from_secs(120))
        .setting("store.links", links)
        .setting("server.drain_delay", "0s")
        .setting("limits.misses_per_address", "")
}

fn start(app: &App, number: usize, roles: &[&str]) -> Server {
    let folder = format!("data_dir=data-{number}");
    let arguments = [roles, &["--set", &folder]].concat();
    app.start_with(&arguments).unwrap()
}

/// The key that a first start prints, as soon as it does.
fn shown_key(server: &Server) -> String {
    eventually(SHOWN_WITHIN, || {
        let logs = server.logs();
        let after = logs.split_once("shown only this once:").ok_or("no key")?;
        let mut words = after.1.split_whitespace();
        words.next().map(str::to_owned).ok_or("no key")
    })
}

/// Waits without being asked to, says once for what, and works as soon as the database takes writes.
fn waits_until(servers: &[Server], come: impl FnOnce()) {
    for server in servers {
        let admin = server.admin().unwrap();
        let live = Client::new(admin).get("/health/live").unwrap();
        assert_eq!(live.status, 200, "{live:?}");
        let health = wait_for_status(admin, "/health/ready", 503).to_string();
        assert!(health.contains("127.0.0.1"), "no cause in {health}");
    }
    let http = servers[0].http().unwrap();
    let answer = Client::new(http).get("/anykey").unwrap();
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    let mut api = Api::new(http, &format!("curt_00000000_{}", "0".repeat(32)));
    let early = api.create("https://example.com/early").unwrap();
    assert_eq!(early.status, 503, "{early:?}");
    assert!(early.header("retry-after").is_some(), "{early:?}");
    come();
    for server in servers {
        wait_for_status(server.admin().unwrap(), "/health/ready", 200);
        let said = server.logs().matches("engine_awaited").count();
        assert_eq!(said, 1, "{}", server.logs());
    }
    let mut api = Api::new(http, &shown_key(&servers[0]));
    let made = api.create("https://example.com/first").unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    let key = made.json()["key"].as_str().unwrap().to_owned();
    assert_eq!(api.follow(&key).unwrap().status, 302);
}

#[test]
fn servers_and_a_purge_start_while_their_database_is_down_and_go_on_when_it_comes() {
    let _company = Company::join();
    let mut database = need!(postgres::Server::start());
    database.stop().unwrap();
    let app = app(&database.url("postgres"));
    let servers = [start(&app, 0, &[]), start(&app, 1, &["purge"])];
    waits_until(&servers, || database.restart().unwrap());
}

#[test]
fn a_server_starts_while_only_a_standby_is_up_and_goes_on_when_that_is_promoted() {
    let _company = Company::join();
    let mut pair = need!(postgres::Pair::start());
    pair.kill_primary().unwrap();
    let app = app(&pair.url("postgres"));
    let servers = [start(&app, 0, &[])];
    waits_until(&servers, || pair.promote().unwrap());
}

#[test]
fn a_setting_that_cannot_be_read_still_ends_the_start() {
    let app = app("postgres://127.0.0.1:notaport/curt");
    let ended = app.output(&["serve"]).unwrap();
    assert_eq!(ended.status.code(), Some(78), "{ended:?}");
}

#[test]
fn keygen_and_keysync_are_not_ready_while_no_engine_answers() {
    let _company = Company::join();
    let app = app("postgres://postgres@127.0.0.1:1/links")
        .setting("store.keys", "postgres://postgres@127.0.0.1:1/keys")
        .setting("store.pool", "redis://127.0.0.1:1")
        .setting("store.leases", "zookeeper://127.0.0.1:1/curt");
    for (number, role) in ["keygen", "keysync"].into_iter().enumerate() {
        let server = start(&app, number, &[role]);
        let admin = server.admin().unwrap();
        let ready = Client::new(admin).get("/health/ready").unwrap();
        assert_eq!(ready.status, 503, "{role}: {}", ready.text());
        let live = Client::new(admin).get("/health/live").unwrap();
        assert_eq!(live.status, 200, "{role}: {}", live.text());
        eventually(SHOWN_WITHIN, || {
            let health = Client::new(admin).get("/health/ready").unwrap();
            match health.text().contains("could not") && health.status == 503 {
                true => Ok(()),
                false => Err(health.text()),
            }
        });
    }
}

/// Keeps servers from adding their first API key until so many are about to: then none of them saw another's.
fn line_up(servers: usize) -> String {
    format!(
        "do $$ begin lock table api_keys in share row exclusive mode; \
         for look in 1..100 loop \
           exit when (select count(*) from pg_locks \
             where not granted and relation = 'api_keys'::regclass) >= {servers}; \
           perform pg_sleep(0.05); \
         end loop; end $$"
    )
}

#[test]
fn several_first_starts_at_once_make_one_key_and_all_serve() {
    let _company = Company::join();
    let engine = need!(postgres::shared());
    for round in 0..length(10, 30) {
        let database = engine.database("links").unwrap();
        let app = app(&database.url());
        let lines_up = round % 2 == 0;
        if lines_up {
            app.run(&["migrate"]).unwrap();
        }
        let servers: Vec<Server> = thread::scope(|scope| {
            if lines_up {
                scope.spawn(|| database.sql(&line_up(SERVERS)).unwrap());
            }
            let starting: Vec<_> = (0..SERVERS)
                .map(|number| (number, &app))
                .map(|(number, app)| scope.spawn(move || start(app, number, &[])))
                .collect();
            let started = starting.into_iter().map(|one| one.join().unwrap());
            started.collect()
        });
        let keys = "select count(*) from api_keys";
        eventually(SHOWN_WITHIN, || {
            let shown = |server: &&Server| server.logs().contains("shown only this once");
            let makers: Vec<&Server> = servers.iter().filter(shown).collect();
            match (makers.len(), database.sql(keys).unwrap().as_str()) {
                (1, "1") => Ok(()),
                (shown, made) => Err(format!("{shown} keys shown, {made} made")),
            }
        });
        let maker = servers.iter().find(|one| one.logs().contains("shown only"));
        let key = shown_key(maker.unwrap());
        for server in &servers {
            let mut api = Api::new(server.http().unwrap(), &key);
            let made = api.create("https://example.com/").unwrap();
            assert_eq!(made.status, 201, "{made:?}");
        }
    }
}
