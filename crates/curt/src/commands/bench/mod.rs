//! Bounded measurements.

mod drive;
mod keys;

use clap::{Args, Subcommand};

/// Measure how fast each key strategy hands out keys
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt bench keys")]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Keys(keys::Keys),
}

impl Bench {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let What::Keys(keys) = self.what;
        keys.run()
    }
}
