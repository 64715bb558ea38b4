use curt_testkit::engines::mariadb::{self, Server};
use curt_testkit::need;

#[test]
fn tests_share_a_server_and_have_databases_of_their_own() {
    let server = need!(mariadb::shared());
    let one = server.database("one").unwrap();
    let other = server.database("one").unwrap();
    assert_ne!(one.url(), other.url());
    one.sql("create table here (n int); insert into here values (1)")
        .unwrap();
    assert_eq!(one.sql("select n, n + 1 from here").unwrap(), "1\t2");
    assert!(other.sql("select n from here").is_err());
}

#[test]
fn a_killed_server_comes_back_on_its_port_with_its_data() {
    let mut server = need!(Server::start());
    server
        .sql("create database d; create table d.kept as select 7 as n")
        .unwrap();
    let port = server.port();
    server.kill().unwrap();
    assert!(server.sql("select 1").is_err());
    server.restart().unwrap();
    assert_eq!(server.port(), port);
    assert_eq!(server.sql("select n from d.kept").unwrap(), "7");
}
