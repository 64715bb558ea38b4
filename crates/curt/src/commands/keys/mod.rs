//! The supply of keys, as operators see it.

mod fill;
mod show;
mod status;

use clap::{Args, Subcommand};

/// Look at the supply of keys, or add to it
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt keys status --config curt.toml\n  curt keys status --watch\n  curt keys status --json\n  curt keys fill --until 10000000 --config curt.toml"
)]
pub(crate) struct KeysCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Status(status::Status),
    Fill(fill::Fill),
}

impl KeysCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Status(status) => status.run(),
            What::Fill(fill) => fill.run(),
        }
    }
}
