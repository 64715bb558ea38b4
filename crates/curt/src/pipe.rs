//! `curt link list | head`: a reader that has seen enough is no failure.

use std::panic::{self, PanicHookInfo};

/// How the standard library's panic begins when nobody reads standard output any more.
const NOBODY_READS: &str = "failed printing to stdout: Broken pipe";

/// What a shell reports of programs that ended with their reader: 128 and the number of SIGPIPE.
const ENDED_WITH_READER: i32 = 141;

/// Ends the process without a word when its standard output is closed, as other programs of a pipe do. The signal that
/// would do this is off, because a server must survive a client that hangs up.
pub(crate) fn end_with_the_reader() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| match nobody_reads(panic) {
        true => std::process::exit(ENDED_WITH_READER),
        false => usual(panic),
    }));
}

fn nobody_reads(panic: &PanicHookInfo<'_>) -> bool {
    let text = panic.payload_as_str();
    text.is_some_and(|text| text.starts_with(NOBODY_READS))
}
