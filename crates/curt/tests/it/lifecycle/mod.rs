//! The life of an installation: first start, keys, commands, settings, stop.

mod accounts;
mod api_keys;
mod commands;
pub(crate) mod health;
mod links;
mod masking;
mod membership;
mod settings;
mod shutdown;
mod starts;
mod stats;
pub(crate) mod stops;

use std::process::Output;

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// What a command printed, which must have succeeded.
fn printed(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}: {}",
        output.status,
        stderr(output)
    );
    stdout(output)
}
