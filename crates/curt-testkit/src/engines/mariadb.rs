//! MariaDB, which speaks MySQL's protocol and dialect.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::Result;
use rustix::process::Signal;

use super::account::Account;
use super::command::output;
use super::engine::{Recipe, controls_engine};
use super::home::Home;
use super::port::on_free_ports;
use super::shared::Shared;
use super::{Engine, Missing, Port, unique};

const MARIADB: Missing = Missing {
    engine: "MariaDB",
    install: "apt-get install mariadb-server",
};
/// Refuses to run as root.
const ACCOUNT: Account = Account("mysql");
/// Enough for several processes of several workers each, over the 151 of the default.
const CONNECTIONS_MAX: u32 = 400;
/// Safe against a killed process, which is all that tests do to it. Versions that do not know one of them pass it over.
const UNSYNCED: [&str; 2] = [
    "--loose-innodb-flush-method=nosync",
    "--loose-debug-no-sync",
];

/// The server that all tests of this process share, each in a [`Database`] of its own.
pub fn shared() -> Result<Arc<Server>> {
    static SHARED: Shared<Server> = Shared::new();
    SHARED.get(Server::start)
}

/// A MariaDB server that lets in `root` from the loopback without a password.
#[derive(Debug)]
pub struct Server {
    engine: Engine,
    port: Port,
    client: Client,
}

impl Server {
    /// Starts an empty server.
    pub fn start() -> Result<Self> {
        let program = MARIADB.program("mariadbd")?;
        on_free_ports(|| {
            let home = Home::new()?;
            ACCOUNT.own(home.path())?;
            make_data(home.path())?;
            let port = Port::free()?;
            let client = Client::new(home.path())?;
            let recipe = recipe(program.clone(), home.path(), &port, client.clone());
            let engine = Engine::start(home, recipe)?;
            Ok(Self {
                engine,
                port,
                client,
            })
        })
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The address of a database on it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("mysql://root@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs statements outside of any database and returns their rows as plain text, columns separated by tabs.
    pub fn sql(&self, statements: &str) -> Result<String> {
        self.client.run(&["-e", statements])
    }

    /// Makes an empty database that no other test has.
    pub fn database(self: &Arc<Self>, name: &str) -> Result<Database> {
        let name = unique(name);
        self.sql(&format!("create database {name}"))?;
        let server = Arc::clone(self);
        Ok(Database { server, name })
    }
}

controls_engine!(Server);

/// A database of one's own on a shared server.
#[derive(Clone, Debug)]
pub struct Database {
    server: Arc<Server>,
    name: String,
}

impl Database {
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// Runs statements and returns their rows as plain text, columns separated by tabs.
    pub fn sql(&self, statements: &str) -> Result<String> {
        let client = &self.server.client;
        client.run(&["-D", &self.name, "-e", statements])
    }
}

fn make_data(folder: &Path) -> Result<()> {
    let mut command = ACCOUNT.command(MARIADB.program("mariadb-install-db")?);
    command
        .args(["--no-defaults", "--skip-test-db"])
        .arg("--auth-root-authentication-method=normal")
        .args(UNSYNCED)
        .arg(format!("--datadir={}", data_in(folder).display()));
    // Two that are made at once would meet in the common folder for temporary tables.
    let command = command.env("TMPDIR", folder).current_dir(folder);
    output(command).map(drop)
}

fn recipe(program: PathBuf, folder: &Path, port: &Port, client: Client) -> Recipe {
    let arguments = [
        "--no-defaults".to_owned(),
        format!("--datadir={}", data_in(folder).display()),
        format!("--socket={}", socket_in(folder).display()),
        format!("--port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--skip-name-resolve".to_owned(),
        format!("--max-connections={CONNECTIONS_MAX}"),
        "--innodb-flush-log-at-trx-commit=2".to_owned(),
    ];
    Recipe {
        name: "MariaDB",
        command: Box::new(move || {
            let mut command = ACCOUNT.command(&program);
            command.args(&arguments).args(UNSYNCED);
            command
        }),
        serves: Box::new(move || client.run(&["-e", "select 1"]).is_ok()),
        stop_signal: Signal::TERM,
    }
}

/// The command line client, by the socket in the server's folder, which nobody else can answer on.
#[derive(Clone, Debug)]
struct Client {
    program: PathBuf,
    socket: PathBuf,
}

impl Client {
    fn new(folder: &Path) -> Result<Self> {
        Ok(Self {
            program: MARIADB.program("mariadb")?,
            socket: socket_in(folder),
        })
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command
            .args(["--no-defaults", "-uroot", "-N", "-B", "--connect-timeout=5"])
            .arg("-S")
            .arg(&self.socket)
            .args(arguments);
        Ok(output(&mut command)?.trim_end().to_owned())
    }
}

fn data_in(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("socket")
}
