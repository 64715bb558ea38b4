//! Bounded measurements.

mod drive;
mod engines;
mod keys;
mod load;

use clap::{Args, Subcommand};

/// Measure key strategies or the engines behind them, or load a server on this machine
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt bench keys\n  curt bench keys --engines --config curt.toml\n  curt bench redirect --api-key KEY --seconds 5 --pid $(pgrep -x curt)\n  curt bench create --api-key KEY --bulk 1000"
)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Keys(keys::Keys),
    Redirect(load::Redirect),
    Create(load::Create),
}

impl Bench {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Keys(keys) => keys.run(),
            What::Redirect(redirect) => redirect.run(),
            What::Create(create) => create.run(),
        }
    }
}
