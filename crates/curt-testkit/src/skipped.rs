//! Tests that cannot run here say so, where nobody can overlook it.

use std::fs::File;
use std::io::{self, Write};

/// Names the file that skipped tests are written to, one line each. `make test` counts them in its closing line.
const LIST_VARIABLE: &str = "SKIPPED_TESTS_LIST";

/// Says that `test` was skipped and why, on the real standard error and in the list of skipped tests.
pub fn say(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}\n");
    // Not by a macro: the test runner keeps back what a passing test prints that way. One write, because other tests
    // print at the same time. Nobody is left to tell when either fails.
    io::stderr().write_all(line.as_bytes()).ok();
    if let Some(list) = std::env::var_os(LIST_VARIABLE) {
        let file = File::options().append(true).create(true).open(list);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .ok();
    }
}
