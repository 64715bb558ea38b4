//! The executable: arguments, then configuration, then one command, then an exit code.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]
#![cfg_attr(
    not(any(
        feature = "cassandra",
        feature = "dynamodb",
        feature = "mysql",
        feature = "objects",
        feature = "postgres",
        feature = "redis",
        feature = "zookeeper"
    )),
    expect(
        dead_code,
        unreachable_patterns,
        reason = "what engines need that are not in this build"
    )
)]

mod account_tasks;
mod agent;
mod backoff;
mod cli;
mod click_health;
mod clicks;
mod clock_watch;
mod collectors;
mod commands;
mod config;
mod data;
mod exit_code;
mod first_start;
mod forward_health;
mod health;
mod link_copies;
mod lost_database;
mod open_files;
mod pipe;
mod preflight;
mod private_files;
mod roles;
mod service_manager;
mod shard_tasks;
mod signals;
mod supervisor;
mod system_status;
mod telemetry;
mod wiring;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::exit_code::ExitReason;

/// The redirect path allocates little, but the API and the loaders do; measured against the system allocator under
/// mixed load it saves CPU and keeps the resident size flat.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Whether memory that is taken from now on may come in pages of 2 MiB. A kernel that cannot tell leaves it as it is.
fn allow_huge_pages(allowed: bool) {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(!allowed) {
        tracing::debug!(%error, allowed, "huge pages left as they are");
    }
}

fn main() -> ExitCode {
    // Before anything is allocated: a process that has such pages keeps them.
    allow_huge_pages(false);
    pipe::end_with_the_reader();
    private_files::restrict_new_files();
    let done = match Cli::parse().command {
        Command::Serve(serve) => serve.run(),
        Command::Check(check) => check.run(),
        Command::Migrate(migrate) => migrate.run(),
        Command::Backup(backup) => backup.run(),
        Command::Restore(restore) => restore.run(),
        Command::Copy(copy) => copy.run(),
        Command::User(user) => user.run(),
        Command::ApiKey(command) => command.run(),
        Command::Keys(keys) => keys.run(),
        Command::Shards(shards) => shards.run(),
        Command::Spool(spool) => spool.run(),
        Command::Audit(audit) => audit.run(),
        Command::Events(events) => events.run(),
        Command::Link(link) => link.run(),
        Command::Stats(stats) => stats.run(),
        Command::Bench(bench) => bench.run(),
        Command::Plan(plan) => plan.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("curt: {error:#}");
            ExitCode::from(ExitReason::of(&error).code())
        }
    }
}
