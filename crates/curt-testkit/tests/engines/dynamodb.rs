use curt_testkit::engines::dynamodb::{self, Server};
use curt_testkit::need;

#[test]
fn tests_share_a_server() {
    let one = need!(dynamodb::shared());
    let other = need!(dynamodb::shared());
    assert_eq!(one.url("a"), other.url("a"));
    assert!(one.serves());
}

#[test]
fn a_killed_server_comes_back_on_its_port() {
    let mut server = need!(Server::start());
    let url = server.url("a");
    server.kill().unwrap();
    assert!(!server.serves());
    server.restart().unwrap();
    assert!(server.serves());
    assert_eq!(server.url("a"), url);
}
