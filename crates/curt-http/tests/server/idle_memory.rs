//! A11: what an idle connection costs. The server runs in a process of its own, so that the clients' side is not
//! counted.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::client::Client;
use crate::host::Host;

const BYTES_PER_CONNECTION_MAX: u64 = 30 * 1_024;
/// Set in the server's process only.
const SERVE: &str = "CURT_TEST_SERVE_UNTIL_STDIN_CLOSES";

struct ServerProcess {
    child: Child,
    address: std::net::SocketAddr,
}

impl ServerProcess {
    fn start() -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["idle_memory::server_process", "--exact", "--nocapture"])
            .env(SERVE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.as_mut().unwrap());
        let address = stdout
            .lines()
            .find_map(|line| line.unwrap().split("listening on ").nth(1)?.parse().ok())
            .unwrap();
        Self { child, address }
    }

    /// Resident memory that is not backed by files.
    fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("RssAnon:"))
            .unwrap();
        let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kibibytes * 1_024
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// Not a test of its own: the process that [`ServerProcess`] starts.
#[test]
fn server_process() {
    if env::var_os(SERVE).is_none() {
        return;
    }
    rlimit::increase_nofile_limit(u64::MAX).unwrap();
    let host = Host::with(|settings| settings.workers = 1);
    println!("listening on {}", host.address);
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    host.stopped();
}

fn bytes_per_idle_connection(connections: usize, path: &str) -> u64 {
    let files = rlimit::increase_nofile_limit(u64::MAX).unwrap();
    assert!(
        files > connections as u64 + 100,
        "only {files} files may be open at once"
    );
    let server = ServerProcess::start();
    // What the first connections cost once and for all is not theirs.
    for _ in 0..100 {
        Client::connect(server.address).get(path);
    }
    let before = server.resident();
    let mut idle: Vec<_> = (0..connections)
        .map(|_| Client::connect(server.address))
        .collect();
    for client in &mut idle {
        client.get(path);
    }
    let each = server.resident().saturating_sub(before) / connections as u64;
    println!("{path}: {each} bytes per idle connection");
    each
}

#[test]
fn ten_thousand_idle_connections_cost_little_each() {
    let each = bytes_per_idle_connection(10_000, "/plain");
    assert!(each <= BYTES_PER_CONNECTION_MAX, "{each} bytes");
}

#[test]
fn idle_connections_of_the_router_cost_little_each() {
    let each = bytes_per_idle_connection(2_000, "/");
    assert!(each <= BYTES_PER_CONNECTION_MAX, "{each} bytes");
}
