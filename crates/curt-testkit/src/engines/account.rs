use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::command;

/// The account that an engine runs under: some refuse to run as root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account(pub &'static str);

impl Account {
    /// A command that runs under this account where we are root, and under our own where we are not.
    pub(super) fn command(self, program: impl AsRef<OsStr>) -> Command {
        if !is_root() {
            return Command::new(program);
        }
        let Self(name) = self;
        let mut command = Command::new("setpriv");
        command
            .args([format!("--reuid={name}"), format!("--regid={name}")])
            .arg("--init-groups")
            .arg(program);
        command
    }

    /// Gives the folder to this account.
    pub(super) fn own(self, folder: &Path) -> Result<()> {
        if is_root() {
            command::output(Command::new("chown").arg(self.0).arg(folder))?;
        }
        Ok(())
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
