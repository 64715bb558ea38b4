//! Writes the access log, on a thread of its own.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use curt_core::names::{event, metric};
use curt_http::{AccessEntry, AccessLog};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use serde_json::json;

use super::text::push_field;
use crate::config::{ConfigError, LogFormat, LogSettings};
use crate::wiring::rfc3339;

/// How often an idle thread looks whether it shall reopen its file or end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Opens the access log, if there shall be one, and starts to write it.
pub(crate) fn open_access_log(
    settings: &LogSettings,
    registry: &mut Registry,
) -> anyhow::Result<Option<(Arc<AccessLog>, AccessLogWriter)>> {
    let Some(scope) = settings.access else {
        return Ok(None);
    };
    let dropped = Counter::default();
    registry.register(
        metric::ACCESS_LOG_DROPPED,
        "Lines of the access log that were not written because it could not keep up",
        dropped.clone(),
    );
    let (log, entries) = AccessLog::new(scope, dropped);
    Ok(Some((log, AccessLogWriter::start(settings, entries)?)))
}

/// The thread that writes, and how it is told something.
pub(crate) struct AccessLogWriter {
    requests: Arc<Requests>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Requests {
    reopen: AtomicBool,
    stop: AtomicBool,
}

impl AccessLogWriter {
    /// Opens the file, if there is one, and starts to write what comes out of `entries`.
    fn start(settings: &LogSettings, entries: Receiver<AccessEntry>) -> anyhow::Result<Self> {
        let output = Output::open(settings.access_file.as_deref()).map_err(|error| {
            let file = settings.access_file.as_deref().unwrap_or(Path::new(""));
            ConfigError::new(format!(
                "log.access_file: could not open {}: {error}",
                file.display()
            ))
        })?;
        let requests = Arc::new(Requests::default());
        let (format, told) = (settings.format, Arc::clone(&requests));
        let thread = std::thread::Builder::new()
            .name("curt-access-log".to_owned())
            .spawn(move || write_all(&entries, output, format, &told))
            .context("could not start the access log")?;
        Ok(Self { requests, thread })
    }

    /// Has the file opened anew by its name: whoever rotates logs has moved the old one away.
    pub(crate) fn reopen(&self) {
        self.requests.reopen.store(true, Ordering::Relaxed);
    }

    /// Writes what waits, and ends.
    pub(crate) fn finish(self) {
        self.requests.stop.store(true, Ordering::Relaxed);
        if self.thread.join().is_err() {
            tracing::error!(
                event = event::TASK_FAILED,
                task = "access-log",
                "access log panicked"
            );
        }
    }
}

fn write_all(
    entries: &Receiver<AccessEntry>,
    mut output: Output,
    format: LogFormat,
    requests: &Requests,
) {
    loop {
        if requests.reopen.swap(false, Ordering::Relaxed) {
            output.reopen();
        }
        let received = match entries.try_recv() {
            Ok(entry) => Ok(entry),
            // Only now: lines that come together are written together.
            Err(_) => {
                output.flush();
                entries.recv_timeout(LOOK_EVERY)
            }
        };
        match received {
            Ok(entry) => output.write(&line(&entry, format)),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) if requests.stop.load(Ordering::Relaxed) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn line(entry: &AccessEntry, format: LogFormat) -> String {
    let micros = u64::try_from(entry.elapsed.as_micros()).unwrap_or(u64::MAX);
    let address = entry.address.to_string();
    let user = entry.user.map(|user| user.0);
    let optional = [
        ("agent", Some(&*entry.agent)),
        ("referrer", Some(&*entry.referrer)),
        ("request_id", entry.request_id.as_deref()),
    ];
    let optional = optional
        .into_iter()
        .filter_map(|(name, text)| Some((name, text.filter(|text| !text.is_empty())?)));
    if format == LogFormat::Json {
        let mut object = json!({
            "timestamp": rfc3339(entry.at),
            "level": "INFO",
            "event": event::REQUEST_ANSWERED,
            "message": "request answered",
            "method": entry.method,
            "path": entry.path,
            "status": entry.status,
            "address": address,
            "micros": micros,
        });
        if let Some(user) = user {
            object["user"] = user.into();
        }
        for (name, text) in optional {
            object[name] = text.into();
        }
        return format!("{object}\n");
    }
    let mut line = format!("{}  INFO request answered", rfc3339(entry.at));
    push_field(&mut line, "event", event::REQUEST_ANSWERED);
    push_field(&mut line, "method", entry.method);
    push_field(&mut line, "path", &entry.path);
    push_field(&mut line, "status", &entry.status.to_string());
    push_field(&mut line, "address", &address);
    push_field(&mut line, "micros", &micros.to_string());
    if let Some(user) = user {
        push_field(&mut line, "user", &user.to_string());
    }
    for (name, text) in optional {
        push_field(&mut line, name, text);
    }
    line.push('\n');
    line
}

/// Standard error, or a file.
struct Output {
    path: Option<PathBuf>,
    to: BufWriter<Box<dyn Write + Send>>,
    /// So that a full disk is told once.
    is_failing: bool,
}

impl Output {
    fn open(path: Option<&Path>) -> io::Result<Self> {
        let to: Box<dyn Write + Send> = match path {
            Some(path) => Box::new(append(path)?),
            None => Box::new(io::stderr()),
        };
        Ok(Self {
            path: path.map(Path::to_owned),
            to: BufWriter::new(to),
            is_failing: false,
        })
    }

    fn reopen(&mut self) {
        self.flush();
        let Some(path) = &self.path else {
            return;
        };
        match append(path) {
            Ok(file) => self.to = BufWriter::new(Box::new(file)),
            Err(error) => self.note(Err(error)),
        }
    }

    fn write(&mut self, line: &str) {
        let written = self.to.write_all(line.as_bytes());
        self.note(written);
    }

    fn flush(&mut self) {
        let written = self.to.flush();
        self.note(written);
    }

    fn note(&mut self, written: io::Result<()>) {
        let failed = written.is_err();
        if let Err(error) = written
            && !self.is_failing
        {
            tracing::error!(event = event::ACCESS_LOG_FAILED, %error, "access log not written");
        }
        self.is_failing = failed;
    }
}

fn append(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new().append(true).create(true).open(path)
}

#[cfg(test)]
mod tests {
    use curt_core::{OwnerId, UnixMillis};

    use super::*;

    fn entry() -> AccessEntry {
        AccessEntry {
            at: UnixMillis(1_800_000_000_123),
            method: "GET",
            path: "/plan".into(),
            status: 302,
            address: [192, 0, 2, 7].into(),
            user: None,
            elapsed: Duration::from_micros(42),
            agent: "Mozilla/5.0 (X11; \"a=b\")".into(),
            referrer: "".into(),
            request_id: None,
        }
    }

    #[test]
    fn a_line_parses_in_both_forms() {
        let told = line(&entry(), LogFormat::Text);
        let expected = "2027-01-15T08:00:00.123Z  INFO request answered event=request_answered method=GET path=/plan \
             status=302 address=192.0.2.7 micros=42 agent=\"Mozilla/5.0 (X11; \\\"a=b\\\")\"\n";
        assert_eq!(told, expected);
        let with_user = AccessEntry {
            user: Some(OwnerId(7)),
            request_id: Some("abc".into()),
            ..entry()
        };
        let json: serde_json::Value =
            serde_json::from_str(&line(&with_user, LogFormat::Json)).unwrap();
        assert_eq!(json["status"], 302);
        assert_eq!(json["micros"], 42);
        assert_eq!(json["user"], 7);
        assert_eq!(json["request_id"], "abc");
        assert_eq!(json["agent"], "Mozilla/5.0 (X11; \"a=b\")");
        assert!(json.get("referrer").is_none());
    }
}
