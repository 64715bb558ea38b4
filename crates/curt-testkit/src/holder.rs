//! A lease's holder in a process of its own, to be stopped and killed as a whole.
//!
//! The process is this test binary again, told by the environment to run the one test that calls [`hold_if_asked`].

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::process::Guarded;
use curt_core::ports::Leases;

const ADDRESS: &str = "CURT_TEST_HOLDER_ADDRESS";
const LEASE: &str = "a";
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A process that holds the lease `a`.
pub struct Holder {
    process: Guarded,
    said: BufReader<ChildStdout>,
}

impl Holder {
    /// Starts the process and returns it with the fencing token of the lease that it took.
    pub fn start(address: &str, test: &str) -> (Self, u64) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", test, "--nocapture"])
            .env(ADDRESS, address)
            .stdout(Stdio::piped());
        let mut process = Guarded::spawn(&mut command).unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        let mut holder = Self { process, said };
        let fencing_token = holder.hear("token ");
        (holder, fencing_token.parse().unwrap())
    }

    pub fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success(), "kill {name} {pid}");
    }

    /// Waits for a line that begins so, and returns its rest.
    pub fn hear(&mut self, beginning: &str) -> String {
        let mut line = String::new();
        while self.said.read_line(&mut line).unwrap() > 0 {
            if let Some((_, rest)) = line.split_once(beginning) {
                return rest.trim_end().into();
            }
            line.clear();
        }
        panic!("the holder ended without saying {beginning:?}");
    }
}

/// In a holder's process: takes the lease, says its fencing token, renews it all the time and says so when it is lost.
pub async fn hold_if_asked(ttl: Duration, open: impl FnOnce(&str) -> Arc<dyn Leases>) {
    let Ok(address) = std::env::var(ADDRESS) else {
        return;
    };
    let say = |line: String| {
        // Not by a macro, which the test runner would keep back.
        let mut out = std::io::stdout();
        out.write_all(line.as_bytes()).unwrap();
        out.flush().unwrap();
    };
    let leases = open(&address);
    let lease = loop {
        match leases.acquire(LEASE, ttl).await {
            Ok(Some(lease)) => break lease,
            // A busy machine may keep the engine from answering in time.
            Ok(None) => {}
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
    say(format!("\ntoken {}\n", lease.fencing_token));
    while leases.renew(&lease, ttl).await.unwrap_or(true) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    say("\nlost it\n".into());
}
