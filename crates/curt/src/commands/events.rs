use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use curt_clicks::record::decode_any;
use curt_core::{Clock as _, SystemClock, UnixMillis};

use super::block_on;
use crate::cli::ConfigArgs;
use crate::config::{Config, units};
use crate::wiring;

/// Look at the stream of clicks
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt events tail --since 10m")]
pub(crate) struct EventsCommand {
    #[command(subcommand)]
    action: EventsAction,
}

#[derive(Debug, Subcommand)]
enum EventsAction {
    Tail(Tail),
}

/// Print clicks of all servers as they come
///
/// For streams that processes share (store.stream = "kafka://…"). Looking on changes nothing, and other readers do not
/// notice it.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt events tail --config curt.toml\n  curt events tail --since 1h --json | jq .shortCode"
)]
struct Tail {
    #[command(flatten)]
    config: ConfigArgs,

    /// Begin with clicks that came this long ago, such as 10m
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// End after so many clicks
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,

    /// Print the JSON as it is in the stream, one click per line
    #[arg(long)]
    json: bool,
}

/// How long to wait for a click before looking whether the reader is still there.
const WAIT: Duration = Duration::from_secs(1);

impl EventsCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.action {
            EventsAction::Tail(tail) => tail.run(),
        }
    }
}

impl Tail {
    fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        let stream = &config.store.stream;
        anyhow::ensure!(
            stream.kind().is_shared(),
            "store.stream is a spool, which one process reads: \"curt stats --clicks\" and the live feed show its clicks"
        );
        let since = self.since.as_deref().map(ago).transpose()?;
        let next = block_on(wiring::stream_tail(&config, stream, since))?;
        let mut out = io::stdout().lock();
        let mut left = self.limit.unwrap_or(u64::MAX);
        while left > 0 {
            let Some(record) = next(WAIT)? else {
                continue;
            };
            left -= 1;
            let line = if self.json {
                as_it_is(&record)
            } else {
                summary(&record)
            };
            // A reader that has gone ends it.
            if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                break;
            }
        }
        Ok(())
    }
}

fn ago(text: &str) -> anyhow::Result<UnixMillis> {
    let time = units::duration(text)
        .map_err(anyhow::Error::msg)
        .context("--since")?;
    let milliseconds = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Ok(UnixMillis(SystemClock.now().0.saturating_sub(milliseconds)))
}

fn as_it_is(record: &[u8]) -> String {
    String::from_utf8_lossy(record).into_owned()
}

/// One line for people. Visitors wrote some of it: a terminal must not obey it.
fn summary(record: &[u8]) -> String {
    let mut buffer = Vec::new();
    match decode_any(record, &mut buffer) {
        Ok(click) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).escape_debug().to_string();
            format!(
                "{}  /{:<12} {:<15} {:<30} {}",
                wiring::rfc3339(click.at),
                text(click.key),
                click.address,
                text(click.referrer),
                text(click.agent)
            )
        }
        Err(error) => format!("unreadable: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_nothing_that_it_would_obey() {
        let json = br#"{"v":1,"shortCode":"a\u001b[2Jb","timestamp":"2026-09-21T14:13:20Z","outcome":"redirected","method":"GET","userAgent":"\u0007x"}"#;
        let line = summary(json);
        assert!(line.starts_with("2026-09-21T14:13:20.000Z"), "{line}");
        assert!(!line.contains(['\u{1b}', '\u{7}']), "{line:?}");
        assert!(summary(b"{").starts_with("unreadable"));
    }
}
