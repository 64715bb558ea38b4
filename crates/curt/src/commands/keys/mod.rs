//! The supply of keys, as operators see it.

mod show;
mod status;

use clap::{Args, Subcommand};

/// Look at the supply of keys
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt keys status --config curt.toml\n  curt keys status --watch\n  curt keys status --json"
)]
pub(crate) struct KeysCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Status(status::Status),
}

impl KeysCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Status(status) => status.run(),
        }
    }
}
