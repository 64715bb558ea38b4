use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory as _};

use crate::cli::Cli;

/// Print the manual page, or write one for each command
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt man | man -l -\n  curt man --into /usr/local/share/man/man1"
)]
pub(crate) struct Man {
    /// Write curt.1, curt-link.1, curt-link-add.1 and so on into this folder, which must be there
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut command = Cli::command();
        command.build();
        match &self.into {
            Some(folder) => write_pages(&command, folder),
            None => Ok(clap_mangen::Man::new(command).render(&mut io::stdout())?),
        }
    }
}

fn write_pages(command: &Command, folder: &Path) -> anyhow::Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    let name = command.get_display_name().unwrap_or("curt");
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, page)
        .with_context(|| format!("--into: could not write {}", path.display()))?;
    for below in command
        .get_subcommands()
        .filter(|one| one.get_name() != "help")
    {
        write_pages(below, folder)?;
    }
    Ok(())
}
