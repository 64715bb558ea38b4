//! A server that is asked to stop while its database says nothing.

use std::time::{Duration, Instant};

use curt_testkit::engines::postgres;
use curt_testkit::need;
use curt_testkit::process::App;

use crate::alone::Company;
use crate::api::Api;
use crate::length::time_max;

#[test]
fn a_stop_does_not_wait_for_a_database_that_is_paused() {
    let _company = Company::join();
    let database = need!(postgres::Server::start());
    let app = App::new(env!("CARGO_BIN_EXE_curt"))
        .unwrap()
        .ready_within(Duration::from_secs(120))
        .setting("store.links", database.url("postgres"))
        // Longer than a stop may take: what waits for the engine ends by its own deadline.
        .setting("server.shutdown_grace", "600s")
        .setting("server.drain_delay", "0s");
    app.run(&["user", "add", "tests@example.com"]).unwrap();
    let token = app.run(&["api-key", "add", "tests", "--user", "tests@example.com"]);
    let server = app.start().unwrap();
    let mut api = Api::new(server.http().unwrap(), token.unwrap().trim());
    let created = api.create("https://example.com/").unwrap();
    assert_eq!(created.status, 201, "{created:?}");
    let key = created.json()["key"].as_str().unwrap().to_owned();
    // A click that is not counted yet.
    assert_eq!(api.follow(&key).unwrap().status, 302);
    database.pause().unwrap();
    let begun = Instant::now();
    let ended = server.terminate(time_max(Duration::from_secs(8)));
    println!("a stop with a paused database took {:?}", begun.elapsed());
    database.resume().unwrap();
    ended.unwrap();
}
