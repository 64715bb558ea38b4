use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use rustix::process::Signal;

use super::REDIS;
use crate::engines::certificates::Certificates;
use crate::engines::command::output;
use crate::engines::engine::{Recipe, controls_engine};
use crate::engines::home::Home;
use crate::engines::port::on_free_ports;
use crate::engines::{Engine, Port};

/// The account of [`Server::start_secured`].
const USER: &str = "curt";
const PASSWORD: &str = "only-for-tests";

/// A Redis server that keeps nothing on disk unless it is asked to (`SAVE`).
#[derive(Debug)]
pub struct Server {
    engine: Engine,
    port: Port,
    client: Client,
}

impl Server {
    /// Starts an empty server.
    pub fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// Starts an empty server with further lines of its configuration, such as `appendonly yes`.
    pub fn start_with(settings: &[&str]) -> Result<Self> {
        on_free_ports(|| {
            let port = Port::free()?;
            let listen = format!("port {port}");
            let lines = [&[listen.as_str()], settings].concat();
            Self::run(Home::new()?, port, &lines, None)
        })
    }

    /// Starts an empty server that speaks only TLS, and only to the account in its [`url`](Self::url).
    pub fn start_secured() -> Result<Self> {
        on_free_ports(|| {
            let home = Home::new()?;
            let certificates = Certificates::make(home.path())?;
            let port = Port::free()?;
            let lines = [
                "port 0".to_owned(),
                format!("tls-port {port}"),
                format!("tls-cert-file {}", certificates.own.display()),
                format!("tls-key-file {}", certificates.key.display()),
                format!("tls-ca-cert-file {}", certificates.authority.display()),
                "tls-auth-clients no".to_owned(),
                "user default off".to_owned(),
                format!("user {USER} on >{PASSWORD} ~* &* +@all"),
            ];
            let lines = lines.each_ref().map(String::as_str);
            Self::run(home, port, &lines, Some(certificates.authority))
        })
    }

    fn run(home: Home, port: Port, lines: &[&str], authority: Option<PathBuf>) -> Result<Self> {
        let program = REDIS.program("redis-server")?;
        let client = Client::new(port.number(), authority)?;
        let file = home.path().join("redis.conf");
        let ours = [
            "bind 127.0.0.1",
            "save \"\"",
            "appendonly no",
            "repl-diskless-sync-delay 0",
        ];
        fs::write(&file, [&ours, lines].concat().join("\n"))?;
        let recipe = Recipe {
            name: "Redis",
            command: Box::new(move || {
                let mut command = Command::new(&program);
                command.arg(&file);
                command
            }),
            serves: {
                let client = client.clone();
                Box::new(move || client.run(&["PING"]).is_ok_and(|answer| answer == "PONG"))
            },
            stop_signal: Signal::TERM,
        };
        let engine = Engine::start(home, recipe)?;
        Ok(Self {
            engine,
            port,
            client,
        })
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Its address, with the account where it needs one.
    #[must_use]
    pub fn url(&self) -> String {
        let port = self.port();
        match self.client.authority {
            None => format!("redis://127.0.0.1:{port}"),
            Some(_) => format!("rediss://{USER}:{PASSWORD}@127.0.0.1:{port}"),
        }
    }

    /// The certificate of the authority that its own is signed with, where it speaks TLS.
    #[must_use]
    pub fn authority(&self) -> Option<&Path> {
        self.client.authority.as_deref()
    }

    /// Runs one command and returns its answer as `redis-cli` prints it to a pipe: the plain value, a line per element.
    pub fn run_command(&self, words: &[&str]) -> Result<String> {
        self.client.run(words)
    }

    /// The file that `SAVE` writes, and that a restart begins with.
    #[must_use]
    pub fn dump(&self) -> PathBuf {
        self.folder().join("dump.rdb")
    }
}

controls_engine!(Server);

/// The command line client, towards one server.
#[derive(Clone, Debug)]
pub(super) struct Client {
    program: PathBuf,
    port: u16,
    authority: Option<PathBuf>,
}

impl Client {
    pub(super) fn new(port: u16, authority: Option<PathBuf>) -> Result<Self> {
        let program = REDIS.program("redis-cli")?;
        Ok(Self {
            program,
            port,
            authority,
        })
    }

    pub(super) fn run(&self, words: &[&str]) -> Result<String> {
        // A paused server would keep it waiting for ever.
        let mut command = Command::new("timeout");
        command
            .args(["10".as_ref(), self.program.as_os_str()])
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-e"]);
        if let Some(authority) = &self.authority {
            command
                .args(["--user", USER, "--pass", PASSWORD, "--no-auth-warning"])
                .args(["--tls", "--cacert"])
                .arg(authority);
        }
        let answer = output(command.args(words))?;
        Ok(answer.trim_end().to_owned())
    }
}
