//! Whom requests through a real proxy are taken for: in clicks, in limits and in the access log.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use curt_testkit::engines::Port;
use curt_testkit::engines::haproxy::Balancer;
use curt_testkit::http::{Connection, Request};
use curt_testkit::need;
use serde_json::{Value, json};

use crate::site::Site;
use crate::wait::eventually;

/// Where the proxy connects from. The tests' own requests come from another address, and are nobody's word.
const PROXY: &str = "127.0.0.9";
const VISITORS: [&str; 2] = ["127.0.0.2", "127.0.0.3"];
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

fn start_site(protocol: &str) -> Site {
    Site::start(&[
        &format!("server.trusted_proxies={PROXY}/32"),
        &format!("server.proxy_protocol={protocol}"),
        // Three at once, and the next after ten hours.
        "limits.misses_per_address=6/60h",
        "clicks.flush_every=50ms",
        "log.access=all",
        "log.access_file=access.log",
        "log.format=json",
    ])
}

/// HAProxy before the site, with these words for its server and these lines for its frontend.
fn balance(site: &Site, front: &Port, words: &str, lines: &str) -> anyhow::Result<Balancer> {
    let (listen, server) = (front.address(), site.http());
    Balancer::start(&format!(
        "frontend front\n  bind {listen}\n{lines}  default_backend curt\n\
         backend curt\n{lines}  option httpchk GET /health/ready\n  default-server check inter 100ms rise 1\n\
         \x20 server curt1 {server} source {PROXY} {words}\n"
    ))
}

fn follow_as(visitor: &str, proxy: SocketAddr, path: &str) -> u16 {
    let source: IpAddr = visitor.parse().unwrap();
    let request = Request::get(path)
        .header("User-Agent", BROWSER)
        // What anybody can claim.
        .header("X-Forwarded-For", "203.0.113.9");
    let mut connection = Connection::open_from(source, proxy).unwrap();
    connection.send(&request).unwrap().status
}

/// Checks that the proxy's health check passes, and follows links through it as two visitors.
fn judge(site: &Site, balancer: &Balancer, proxy: SocketAddr) {
    eventually(Duration::from_secs(30), || {
        let stats = balancer.run_command("show stat").unwrap();
        let line = stats.lines().find(|line| line.starts_with("curt,curt1,"));
        match line.unwrap().split(',').nth(17) {
            Some("UP") => Ok(()),
            _ => Err(stats.clone()),
        }
    });
    let made = site.api().create("https://example.com/a").unwrap().json();
    let key = made["key"].as_str().unwrap();
    for _ in 0..3 {
        for visitor in VISITORS {
            assert_eq!(follow_as(visitor, proxy, &format!("/{key}")), 302);
        }
    }
    // In clicks: two people.
    let path = format!("/api/v1/links/{key}/stats");
    eventually(Duration::from_secs(30), || {
        let report = site.api().get(&path).unwrap().json();
        match report["visitors"] == json!(2) {
            true => Ok(()),
            false => Err(report.to_string()),
        }
    });
    // In limits: one of them has had enough.
    let [scanner, other] = VISITORS;
    for expected in [404, 404, 404, 429] {
        assert_eq!(follow_as(scanner, proxy, "/no-such-key"), expected);
    }
    assert_eq!(follow_as(scanner, proxy, &format!("/{key}")), 429);
    assert_eq!(follow_as(other, proxy, &format!("/{key}")), 302);
    assert_eq!(follow_as(other, proxy, "/no-such-key"), 404);
    // In the log: nobody but these two, the tests themselves, and the proxy's checks.
    let log = site.folder().join("access.log");
    let text = eventually(Duration::from_secs(30), || {
        let text = fs::read_to_string(&log).unwrap();
        match text.lines().filter(|line| line.contains(key)).count() >= 8 {
            true => Ok(text),
            false => Err(text),
        }
    });
    for line in text.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let path = entry["path"].as_str().unwrap();
        let is_visitors = path == format!("/{key}") || path == "/no-such-key";
        let address = entry["address"].as_str().unwrap();
        assert_eq!(VISITORS.contains(&address), is_visitors, "{line}");
    }
}

#[test]
fn haproxy_with_version_1_of_the_proxy_protocol_names_its_clients() {
    let (site, front) = (start_site("v1v2"), Port::free().unwrap());
    let balancer = need!(balance(&site, &front, "send-proxy", ""));
    judge(&site, &balancer, front.address());
}

#[test]
fn haproxy_with_version_2_of_the_proxy_protocol_names_its_clients() {
    let (site, front) = (start_site("v1v2"), Port::free().unwrap());
    let balancer = need!(balance(&site, &front, "send-proxy-v2", ""));
    judge(&site, &balancer, front.address());
}

/// As a proxy does that understands no HTTP, with facts behind the addresses.
#[test]
fn haproxy_that_passes_bytes_on_names_its_clients() {
    let (site, front) = (start_site("v1v2"), Port::free().unwrap());
    let words = "send-proxy-v2 proxy-v2-options unique-id,crc32c";
    let balancer = need!(balance(&site, &front, words, "  mode tcp\n"));
    judge(&site, &balancer, front.address());
}

#[test]
fn haproxy_with_forwarded_addresses_names_its_clients() {
    let (site, front) = (start_site("off"), Port::free().unwrap());
    let forward = "  http-request set-header X-Forwarded-For %[src]\n";
    let balancer = need!(balance(&site, &front, "", forward));
    judge(&site, &balancer, front.address());
}

/// A header from an address that is no proxy's is refused, and nothing is done in anybody's name.
#[test]
fn a_forged_header_is_refused() {
    let site = start_site("v1v2");
    let made = site.api().create("https://example.com/a").unwrap().json();
    let key = made["key"].as_str().unwrap();
    let mut stream = TcpStream::connect(site.http()).unwrap();
    let forged =
        format!("PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\r\nGET /{key} HTTP/1.1\r\nHost: h\r\n\r\n");
    stream.write_all(forged.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.1 505 "),
        "{answer}"
    );
    assert!(!answer.contains("location:"), "{answer}");
    assert!(
        !fs::read_to_string(site.folder().join("access.log"))
            .unwrap_or_default()
            .contains("192.0.2.7")
    );
}
