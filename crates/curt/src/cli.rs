//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{api_key, audit, bench, check, keys, link, migrate, serve, stats, user};

/// A URL shortener that starts on one machine and grows onto many.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(
    after_help = "Start here:\n  curt serve                 serve on http://127.0.0.1:8080 with data in ./data\n  curt link add https://example.com/a/long/address --api-key KEY"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::Serve),
    Check(check::Check),
    Migrate(migrate::Migrate),
    User(user::UserCommand),
    ApiKey(api_key::ApiKeyCommand),
    Keys(keys::KeysCommand),
    Audit(audit::Audit),
    Link(link::LinkCommand),
    Stats(stats::Stats),
    Bench(bench::Bench),
}

/// Where settings come from.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ConfigArgs {
    /// A TOML file with the settings that differ from the defaults (`curt check --defaults` prints them all)
    #[arg(long, short, env = "CURT_CONFIG", value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,

    /// One setting, over everything else; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE", global = true)]
    pub(crate) set: Vec<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_tree_is_sound() {
        Cli::command().debug_assert();
    }
}
