use std::io::{Read, Write};
use std::net::TcpListener;

use curt_testkit::engines::Port;
use curt_testkit::engines::haproxy::Balancer;
use curt_testkit::http::Client;
use curt_testkit::need;

/// Answers every request with its name.
fn serve(name: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let length = stream.read(&mut [0; 1_024]).unwrap();
            assert!(length > 0);
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n";
            stream
                .write_all(format!("{head}{name}").as_bytes())
                .unwrap();
        }
    });
    port
}

#[test]
fn requests_are_spread_until_a_server_is_taken_out() {
    let port = Port::free().unwrap();
    let (one, other) = (serve("a"), serve("b"));
    let sections = format!(
        "listen front\n  bind 127.0.0.1:{port}\n  balance roundrobin\n  \
         server one 127.0.0.1:{one}\n  server other 127.0.0.1:{other}"
    );
    let balancer = need!(Balancer::start(&sections));
    let ask = || Client::new(port.address()).get("/").unwrap().text();
    let four = || -> String { (0..4).map(|_| ask()).collect() };
    assert_eq!(four().matches('a').count(), 2);
    balancer
        .run_command("set server front/one state maint")
        .unwrap();
    assert_eq!(four(), "bbbb");
}
