use std::io;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;

/// Print a script that completes commands and options in a shell
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt completions bash > ~/.local/share/bash-completion/completions/curt\n  curt completions zsh > ~/.zfunc/_curt\n  curt completions fish > ~/.config/fish/completions/curt.fish"
)]
pub(crate) struct Completions {
    /// The shell that the script is for
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        clap_complete::generate(self.shell, &mut Cli::command(), "curt", &mut io::stdout());
        Ok(())
    }
}
