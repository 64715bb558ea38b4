use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::Missing;
use super::command::output;

const OPENSSL: Missing = Missing {
    engine: "openssl",
    install: "apt-get install openssl",
};

/// A certificate for 127.0.0.1 and the authority that signed it. Two, because clients refuse an authority's own
/// certificate as that of a server.
#[derive(Debug)]
pub(super) struct Certificates {
    pub(super) authority: PathBuf,
    pub(super) own: PathBuf,
    pub(super) key: PathBuf,
}

impl Certificates {
    pub(super) fn make(folder: &Path) -> Result<Self> {
        let certificates = Self {
            authority: folder.join("authority.pem"),
            own: folder.join("own.pem"),
            key: folder.join("own.key"),
        };
        let authority_key = folder.join("authority.key");
        request(&authority_key, "authority")?
            .args(["-x509", "-days", "30", "-out"])
            .arg(&certificates.authority)
            .args(["-addext", "keyUsage=critical,keyCertSign"])
            .run()?;
        let asked = folder.join("own.csr");
        request(&certificates.key, "127.0.0.1")?
            .arg("-out")
            .arg(&asked)
            .run()?;
        let names = folder.join("names");
        fs::write(&names, "subjectAltName=IP:127.0.0.1,DNS:localhost\n")?;
        openssl()?
            .args(["x509", "-req", "-days", "30", "-CAcreateserial", "-in"])
            .arg(asked)
            .arg("-CA")
            .arg(&certificates.authority)
            .arg("-CAkey")
            .arg(authority_key)
            .arg("-extfile")
            .arg(names)
            .arg("-out")
            .arg(&certificates.own)
            .run()?;
        Ok(certificates)
    }
}

trait Run {
    fn run(&mut self) -> Result<()>;
}

impl Run for Command {
    fn run(&mut self) -> Result<()> {
        output(self).map(drop)
    }
}

fn openssl() -> Result<Command> {
    Ok(Command::new(OPENSSL.program("openssl")?))
}

/// Asks for a certificate with a new key.
fn request(key: &Path, name: &str) -> Result<Command> {
    let mut command = openssl()?;
    command
        .args(["req", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:prime256v1", "-nodes", "-subj"])
        .arg(format!("/CN={name}"))
        .arg("-keyout")
        .arg(key);
    Ok(command)
}
