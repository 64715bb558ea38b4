use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use curt_clicks::forward::{ForwardMetrics, ForwardPorts, Forwarder};
use curt_core::{Clock, SystemClock};
use curt_spool::{Spool, SpoolMetrics};

use super::block_on;
use crate::cli::ConfigArgs;
use crate::config::Config;
use crate::wiring;

/// Look after spools, in which captured clicks wait
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt spool drain /mnt/rescued/spool --config curt.toml")]
pub(crate) struct SpoolCommand {
    #[command(subcommand)]
    action: SpoolAction,
}

#[derive(Debug, Subcommand)]
enum SpoolAction {
    Drain(Drain),
}

/// Forward the clicks that a server left behind to the stream that processes share
///
/// The folder may be that of a server that is gone for good, brought to any machine. What the stream has already is not
/// counted again, however often this is called. The server must not be running.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt spool drain /mnt/rescued/spool --config curt.toml")]
struct Drain {
    #[command(flatten)]
    config: ConfigArgs,

    /// The spool's folder
    folder: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl SpoolCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.action {
            SpoolAction::Drain(drain) => drain.run(),
        }
    }
}

impl Drain {
    fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        let settings = config.clicks.as_ref();
        let settings = settings.context("clicks.capture is false: there is no stream to use")?;
        let stream = settings.stream.as_ref().context(
            "store.stream is a spool itself: count what is in the folder with \"curt serve clicks --set \
             store.stream=spool:FOLDER\"",
        )?;
        let shown = self.folder.display();
        // Opening makes what is absent, under a new id.
        anyhow::ensure!(
            self.folder.join("id").is_file(),
            "{shown} is not a spool: it has no file \"id\""
        );
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let metrics = SpoolMetrics::default();
        let spool = Spool::open(&self.folder, &settings.spool, clock.now(), &metrics)
            .with_context(|| format!("could not open the spool {shown}"))?;
        let spool = Arc::new(spool);
        let forwarded = block_on(async {
            let ports = ForwardPorts {
                source: spool.clone(),
                dead_letters: spool.clone(),
                sink: wiring::stream_sink(&config, stream)?,
                clock,
            };
            let forwarder = Forwarder::new(ports, settings.forward, ForwardMetrics::default());
            Ok(forwarder.drain().await?)
        })?;
        let unreadable: u64 = spool.counts().dead_letters.values().sum();
        if self.json {
            let told = serde_json::json!({ "forwarded": forwarded, "unreadable": unreadable });
            println!("{told}");
        } else {
            println!(
                "forwarded {forwarded} clicks of {shown}; {unreadable} records could not be read"
            );
        }
        Ok(())
    }
}
