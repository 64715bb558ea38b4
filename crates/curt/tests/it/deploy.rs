//! The files in `deploy/`, run as they are but for names, ports and certificates.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use curt_testkit::engines::Port;
use curt_testkit::engines::web_proxy::{Certificate, WebProxy, program};
use curt_testkit::need;
use serde_json::Value;

use crate::site::Site;
use crate::wait::eventually;

const HOST: &str = "go.example.com";
/// Where visitors come from: another address than the proxy's.
const VISITOR: &str = "127.0.0.2";

fn deployed(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Replaces what an operator has to change; each must be there.
fn changed(mut text: String, changes: &[(&str, &str)]) -> String {
    for (from, to) in changes {
        assert!(text.contains(from), "no {from:?} in\n{text}");
        text = text.replace(from, to);
    }
    text
}

/// A browser's side of the proxy.
struct Visitor {
    curl: std::path::PathBuf,
    proxy: SocketAddr,
}

impl Visitor {
    /// Sends a request over TLS and returns head and body of the answer.
    fn send(&self, path: &str, arguments: &[&str]) -> (String, String) {
        let port = self.proxy.port();
        let output = Command::new(&self.curl)
            .args(["--silent", "--show-error", "--insecure", "--include", "--http1.1"])
            .args(["--max-time", "60", "--interface", VISITOR])
            .args(["--resolve", &format!("{HOST}:{port}:127.0.0.1")])
            // What anybody can claim.
            .args(["--header", "X-Forwarded-For: 203.0.113.9"])
            .args(arguments)
            .arg(format!("https://{HOST}:{port}{path}"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{path}: {said}");
        let answer = String::from_utf8(output.stdout).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_lowercase(), body.to_owned())
    }

    fn send_json(&self, path: &str, arguments: &[&str], body: &str) -> (String, Value) {
        let json = ["--header", "Content-Type: application/json", "--data", body];
        let (head, body) = self.send(path, &[arguments, &json].concat());
        (head, serde_json::from_str(&body).unwrap())
    }
}

/// A server with the settings that the files ask for.
fn start_site() -> Site {
    Site::start(&[
        "server.public_url=https://go.example.com",
        "server.trusted_proxies=127.0.0.1/32",
        "log.access=all",
        "log.access_file=access.log",
        "log.format=json",
    ])
}

/// Makes, follows and signs in through the proxy, and looks at what curt took the visitor for.
fn judge(site: &Site, visitor: &Visitor) {
    let token = format!("Authorization: Bearer {}", site.token());
    let body = r#"{"target": "https://example.com/a"}"#;
    let (head, made) = visitor.send_json("/api/v1/links", &["--header", &token], body);
    assert!(head.starts_with("http/1.1 201"), "{head}");
    let short = made["short_url"].as_str().unwrap();
    let key = short.strip_prefix("https://go.example.com/").expect(short);
    let hsts = "strict-transport-security: max-age=";
    assert!(head.contains(hsts), "{head}");

    let (head, _) = visitor.send(&format!("/{key}"), &[]);
    assert!(head.starts_with("http/1.1 302"), "{head}");
    assert!(
        head.contains("location: https://example.com/a\r\n"),
        "{head}"
    );
    assert!(head.contains(hsts), "{head}");

    let password = site.app().run(&["user", "add", "ada@example.com"]).unwrap();
    let password = password.trim();
    let shown = serde_json::json!({ "email": "ada@example.com", "password": password });
    let origin = "Origin: https://go.example.com";
    let (head, _) = visitor.send_json(
        "/api/v1/sessions",
        &["--header", origin],
        &shown.to_string(),
    );
    assert!(head.starts_with("http/1.1 201"), "{head}");
    let cookies: Vec<&str> = head
        .lines()
        .filter(|line| line.starts_with("set-cookie:"))
        .collect();
    assert!(!cookies.is_empty(), "{head}");
    for cookie in cookies {
        assert!(
            cookie.contains("__host-") && cookie.contains("; secure"),
            "{cookie}"
        );
    }

    let log = site.folder().join("access.log");
    let entries = eventually(Duration::from_secs(30), || {
        let text = fs::read_to_string(&log).unwrap();
        let entries: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        match entries.len() >= 3 {
            true => Ok(entries),
            false => Err(text),
        }
    });
    for entry in entries {
        assert_eq!(entry["address"], VISITOR, "{entry}");
    }
}

fn curl() -> anyhow::Result<std::path::PathBuf> {
    program("curl", "apt-get install curl")
}

#[test]
fn nginx_with_the_deployed_file_passes_visitors_on() {
    let curl = need!(curl());
    let site = start_site();
    let [plain, tls] = [Port::free().unwrap(), Port::free().unwrap()];
    let configure = |certificate: &Certificate| {
        let listen = |port: &Port| format!("listen {}", port.address());
        let changes = [
            ("listen 80", &*listen(&plain)),
            ("listen 443", &*listen(&tls)),
            ("server 127.0.0.1:8080", &*format!("server {}", site.http())),
            (
                "/etc/letsencrypt/live/go.example.com/fullchain.pem",
                certificate.certificate.to_str().unwrap(),
            ),
            (
                "/etc/letsencrypt/live/go.example.com/privkey.pem",
                certificate.key.to_str().unwrap(),
            ),
        ];
        changed(deployed("nginx.conf"), &changes)
    };
    let proxy = tls.address();
    let _nginx = need!(WebProxy::nginx(HOST, proxy, configure));
    judge(&site, &Visitor { curl, proxy });
}

#[test]
fn caddy_with_the_deployed_file_passes_visitors_on() {
    let curl = need!(curl());
    let site = start_site();
    let tls = Port::free().unwrap();
    let configure = |certificate: &Certificate| {
        let (file, key) = (certificate.certificate.display(), certificate.key.display());
        let host = format!("https://{HOST}:{} {{\n\ttls {file} {key}", tls.number());
        let changes = [
            ("\ngo.example.com {", &*format!("\n{host}")),
            (
                "reverse_proxy 127.0.0.1:8080",
                &*format!("reverse_proxy {}", site.http()),
            ),
        ];
        changed(deployed("Caddyfile"), &changes)
    };
    let proxy = tls.address();
    let _caddy = need!(WebProxy::caddy(HOST, proxy, configure));
    judge(&site, &Visitor { curl, proxy });
}

#[test]
fn the_systemd_unit_is_valid() {
    let analyze = need!(program("systemd-analyze", "apt-get install systemd"));
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("curt.service");
    let binary = env!("CARGO_BIN_EXE_curt");
    let text = changed(
        deployed("curt.service"),
        &[("/usr/local/bin/curt serve", &*format!("{binary} serve"))],
    );
    fs::write(&unit, text).unwrap();
    let output = Command::new(analyze)
        .arg("verify")
        .arg(&unit)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
}

/// systemd starts what depends on the server when it says that it is ready.
#[test]
fn a_service_manager_hears_when_the_server_is_ready_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("notify");
    let states = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    let mut site = Site::with_environment(&[], &[("NOTIFY_SOCKET", &socket)]);
    site.restart();
    let state = || {
        let mut bytes = [0; 64];
        let length = states.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    assert_eq!(state(), "READY=1");
    assert!(site.terminate().success());
    assert_eq!(state(), "STOPPING=1");
}
