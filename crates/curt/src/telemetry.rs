//! Logs. What is logged is named in `curt_core::names::event`.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::{LogFormat, LogSettings};

/// Sends log lines to standard error, so that standard output stays free for what a command prints.
pub(crate) fn start(settings: &LogSettings) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&settings.level)
        .with_context(|| format!("log.level: {:?} is not a log filter", settings.level))?;
    let colours = std::io::stderr().is_terminal();
    let lines = fmt()
        .with_env_filter(filter)
        .with_ansi(colours)
        .with_writer(std::io::stderr);
    match settings.format {
        LogFormat::Text => lines.with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    }
    .map_err(|problem| anyhow::anyhow!("could not start logging: {problem}"))
}
