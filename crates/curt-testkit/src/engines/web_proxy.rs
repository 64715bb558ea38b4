//! nginx and Caddy, with TLS by a certificate of the test's own.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

use super::engine::{Recipe, controls_engine};
use super::home::Home;
use super::{Engine, Missing};

const NGINX: Missing = Missing {
    engine: "nginx",
    install: "apt-get install nginx",
};
const CADDY: Missing = Missing {
    engine: "Caddy",
    install: "apt-get install caddy",
};
const OPENSSL: Missing = Missing {
    engine: "openssl",
    install: "apt-get install openssl",
};

/// A web server that takes TLS connections and passes requests on.
#[derive(Debug)]
pub struct WebProxy {
    engine: Engine,
}

/// A self-signed certificate and its key.
pub struct Certificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl WebProxy {
    /// Starts nginx with the file that `configure` makes for the certificate: what belongs into its `http` section. It
    /// serves once `listen` answers.
    pub fn nginx(
        host: &str,
        listen: SocketAddr,
        configure: impl FnOnce(&Certificate) -> String,
    ) -> Result<Self> {
        let program = NGINX.program("nginx")?;
        let home = Home::new()?;
        let folder = home.path().to_owned();
        let certificate = make_certificate(&folder, host)?;
        fs::write(folder.join("site.conf"), configure(&certificate))?;
        let place = folder.display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {place}/{kind};\n"))
            .concat();
        let whole = format!(
            "daemon off;\nmaster_process off;\npid {place}/pid;\nerror_log stderr;\nevents {{}}\n\
             http {{\naccess_log off;\n{temporary}include {place}/site.conf;\n}}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, whole)?;
        let command = move || {
            let mut command = Command::new(&program);
            command.arg("-e").arg("stderr").arg("-p").arg(&folder);
            command.arg("-c").arg(&file);
            command
        };
        Self::start("nginx", home, listen, command)
    }

    /// Starts Caddy with the Caddyfile that `configure` makes for the certificate.
    pub fn caddy(
        host: &str,
        listen: SocketAddr,
        configure: impl FnOnce(&Certificate) -> String,
    ) -> Result<Self> {
        let program = CADDY.program("caddy")?;
        let home = Home::new()?;
        let folder = home.path().to_owned();
        let certificate = make_certificate(&folder, host)?;
        let file = folder.join("Caddyfile");
        // No administration, no certificates from elsewhere, no further listeners.
        let options = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n";
        fs::write(&file, format!("{options}{}", configure(&certificate)))?;
        let command = move || {
            let mut command = Command::new(&program);
            command.args(["run", "--adapter", "caddyfile", "--config"]);
            command.arg(&file).env("HOME", &folder);
            command.env("XDG_DATA_HOME", &folder);
            command.env("XDG_CONFIG_HOME", &folder);
            command
        };
        Self::start("Caddy", home, listen, command)
    }

    fn start(
        name: &'static str,
        home: Home,
        listen: SocketAddr,
        command: impl Fn() -> Command + Send + Sync + 'static,
    ) -> Result<Self> {
        let recipe = Recipe {
            name,
            command: Box::new(command),
            serves: Box::new(move || TcpStream::connect(listen).is_ok()),
            stop_signal: Signal::TERM,
        };
        let engine = Engine::start(home, recipe)?;
        Ok(Self { engine })
    }
}

controls_engine!(WebProxy);

fn make_certificate(folder: &Path, host: &str) -> Result<Certificate> {
    let made = Certificate {
        certificate: folder.join("certificate.pem"),
        key: folder.join("key.pem"),
    };
    let output = Command::new(OPENSSL.program("openssl")?)
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", &format!("/CN={host}")])
        .args(["-addext", &format!("subjectAltName=DNS:{host}")])
        .arg("-keyout")
        .arg(&made.key)
        .arg("-out")
        .arg(&made.certificate)
        .stdin(Stdio::null())
        .output()
        .context("could not run openssl")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "openssl failed: {said}");
    Ok(made)
}

/// A program of the system that a test runs; see [`need!`](crate::need).
pub fn program(name: &'static str, install: &'static str) -> Result<PathBuf> {
    let missing = Missing {
        engine: name,
        install,
    };
    Ok(missing.program(name)?)
}
