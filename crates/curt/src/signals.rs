use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::telemetry::AccessLogWriter;

/// The signals that end a server, caught from before anything is opened.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("could not listen for Ctrl-C")?,
            terminate: signal(SignalKind::terminate()).context("could not listen for SIGTERM")?,
            hangup: signal(SignalKind::hangup()).context("could not listen for SIGHUP")?,
        })
    }

    /// Waits for the end. SIGHUP ends nothing: it has the access log opened anew.
    pub(crate) async fn wait(&mut self, access_log: Option<&AccessLogWriter>) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hangup.recv() => access_log.into_iter().for_each(AccessLogWriter::reopen),
            }
        }
    }
}
