//! Logs. What is logged is named in `curt_core::names::event`.

mod access;
mod text;

use std::io::IsTerminal as _;

use anyhow::Context as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

pub(crate) use self::access::{AccessLogWriter, open_access_log};
use self::text::{TextFields, TextLines};
use crate::config::{LogFormat, LogSettings};

/// Sends log lines to standard error, so that standard output stays free for what a command prints.
pub(crate) fn start(settings: &LogSettings) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&settings.level)
        .with_context(|| format!("log.level: {:?} is not a log filter", settings.level))?;
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match settings.format {
        LogFormat::Text => {
            let has_colours = std::io::stderr().is_terminal();
            let format = TextLines { has_colours };
            let lines = lines.with_ansi(has_colours).fmt_fields(TextFields);
            lines.event_format(format).try_init()
        }
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true);
            lines.with_span_list(false).try_init()
        }
    }
    .map_err(|problem| anyhow::anyhow!("could not start logging: {problem}"))
}
