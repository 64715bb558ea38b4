//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    api_key, audit, backup, bench, check, completions, copy, events, keys, link, man, migrate,
    plan, serve, shards, spool, stats, user,
};
use crate::exit_code;

/// A URL shortener that starts on one machine and grows onto many.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(
    after_help = format!("Example:\n  curt serve                 serve on http://127.0.0.1:8080 with data in ./data\n  curt link add https://example.com/a/long/address --api-key KEY\n\n{}", exit_code::HELP)
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
    Backup(backup::Backup),
    Restore(backup::Restore),
    Copy(copy::Copy),
    User(user::UserCommand),
    ApiKey(api_key::ApiKeyCommand),
    Keys(keys::KeysCommand),
    Shards(shards::ShardsCommand),
    Spool(spool::SpoolCommand),
    Audit(audit::Audit),
    Events(events::EventsCommand),
    Link(link::LinkCommand),
    Stats(stats::Stats),
    Bench(bench::Bench),
    Plan(plan::PlanCommand),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Where settings come from.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ConfigArgs {
    /// A TOML file with the settings that differ from the defaults (`curt check --defaults` prints them all) [env:
    /// CURT_CONFIG]
    #[arg(
        long,
        short,
        value_name = "FILE",
        global = true,
        help_heading = "Settings"
    )]
    pub(crate) config: Option<PathBuf>,

    /// One setting, over everything else; may be given many times. Lists: a,b or ["a","b"]
    #[arg(
        long = "set",
        value_name = "KEY=VALUE",
        global = true,
        help_heading = "Settings"
    )]
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

    /// Every command with the words that lead to it.
    fn walk(command: &clap::Command, path: &str, check: &mut impl FnMut(&str, &clap::Command)) {
        check(path, command);
        for below in command.get_subcommands() {
            let path = format!("{path} {}", below.get_name());
            walk(below, &path, check);
        }
    }

    #[test]
    fn every_command_has_an_example_that_it_would_take() {
        let cli = Cli::command();
        walk(&cli, "curt", &mut |path, command| {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let example = help.strip_prefix("Example:\n").unwrap_or_default();
            let lines: Vec<&str> = example
                .lines()
                .take_while(|line| !line.is_empty())
                .filter(|line| line.contains("curt "))
                .collect();
            let own = lines.iter().filter(|line| line.contains(path));
            assert!(own.count() > 0, "{path} has no example of itself: {help:?}");
            for line in lines {
                let words = example_words(line);
                let parsed = Cli::try_parse_from(&words);
                assert!(parsed.is_ok(), "{path}: {line}: {:?}", parsed.err());
            }
        });
    }

    /// The words of a command within a line of shell: from `curt` on, without what is redirected or explained.
    fn example_words(line: &str) -> Vec<&str> {
        let command = line.find("curt ").map_or("", |start| &line[start..]);
        let command = command.split("  ").next().unwrap_or_default();
        let end = command.find([')', '<', '>', '|']).unwrap_or(command.len());
        command[..end].split_whitespace().collect()
    }

    #[test]
    fn every_argument_says_what_it_is() {
        let mut cli = Cli::command();
        cli.build();
        walk(&cli, "curt", &mut |path, command| {
            for argument in command.get_arguments() {
                let id = argument.get_id();
                assert!(argument.get_help().is_some(), "{path}: {id}");
            }
            assert!(command.get_about().is_some(), "{path}");
        });
    }
}
