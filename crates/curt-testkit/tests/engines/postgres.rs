use std::sync::Arc;
use std::time::Duration;

use curt_testkit::engines::postgres::{self, Pair, Server};
use curt_testkit::need;

#[test]
fn tests_share_a_server_and_have_databases_of_their_own() {
    let server = need!(postgres::shared());
    let one = server.database("one").unwrap();
    let other = server.database("one").unwrap();
    assert_ne!(one.url(), other.url());
    one.sql("create table here (n int); insert into here values (1)")
        .unwrap();
    assert_eq!(one.sql("select n, n + 1 from here").unwrap(), "1|2");
    assert!(other.sql("select n from here").is_err());
}

#[test]
fn a_killed_server_comes_back_on_its_port_with_its_data() {
    let mut server = need!(Server::start_with(&[("enable_hashjoin", "off")]));
    assert_eq!(server.sql("show enable_hashjoin").unwrap(), "off");
    server.sql("create table kept as select 7 as n").unwrap();
    let port = server.port();
    server.kill().unwrap();
    assert!(server.sql("select 1").is_err());
    server.restart().unwrap();
    assert_eq!(server.port(), port);
    assert_eq!(server.sql("select n from kept").unwrap(), "7");
    server.stop().unwrap();
    server.restart().unwrap();
    assert_eq!(server.sql("select n from kept").unwrap(), "7");
}

#[test]
fn a_paused_server_leaves_even_old_connections_waiting_until_it_goes_on() {
    let server = Arc::new(need!(Server::start()));
    let asking = Arc::clone(&server);
    let asked = std::thread::spawn(move || asking.sql("select 1 from pg_sleep(0.5)"));
    std::thread::sleep(Duration::from_millis(250));
    server.pause().unwrap();
    assert!(!server.serves());
    std::thread::sleep(Duration::from_millis(750));
    assert!(!asked.is_finished());
    server.resume().unwrap();
    assert_eq!(asked.join().unwrap().unwrap(), "1");
    assert!(server.serves());
}

#[test]
fn a_standby_follows_and_takes_over_again_and_again() {
    let mut pair = need!(Pair::start());
    let address = pair.url("postgres");
    let insert = "create table if not exists kept (n int); insert into kept values (1)";
    for round in 1..=2 {
        pair.primary().sql(insert).unwrap();
        pair.wait_until_followed().unwrap();
        let count = "select count(*) from kept";
        assert_eq!(pair.standby().sql(count).unwrap(), round.to_string());
        assert!(
            pair.standby().sql(insert).is_err(),
            "a standby was written to"
        );

        pair.kill_primary().unwrap();
        pair.promote().unwrap();
        assert_eq!(pair.primary().sql(count).unwrap(), round.to_string());
        pair.add_standby().unwrap();
        assert_eq!(pair.url("postgres"), address);
    }
}
