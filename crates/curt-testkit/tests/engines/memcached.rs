use curt_testkit::engines::memcached::Server;
use curt_testkit::need;

#[test]
fn a_killed_server_comes_back_on_its_port() {
    let mut server = need!(Server::start(64));
    let url = server.url();
    server.kill().unwrap();
    assert!(!server.serves());
    server.restart().unwrap();
    assert!(server.serves());
    assert_eq!(server.url(), url);
}
