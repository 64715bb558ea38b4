use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;

use super::programs::Programs;
use crate::engines::command::output;
use crate::engines::engine::{Recipe, controls_engine};
use crate::engines::home::Home;
use crate::engines::port::on_free_ports;
use crate::engines::{Engine, Port, unique};

/// Enough for several processes of several workers each, over the hundred of the default.
const CONNECTIONS_MAX: u32 = 400;
const CHECKPOINTER: &str = "select pid from pg_stat_activity where backend_type = 'checkpointer'";
const KILL_PAUSE: Duration = Duration::from_millis(200);
const LOOK_EVERY: Duration = Duration::from_millis(5);
const RECOVERS_WITHIN: Duration = Duration::from_secs(60);
const BUSY_WITHIN: Duration = Duration::from_secs(60);

/// For [`Server::start_with`]: every commit is on the disk before it is answered, as in production. For tests that measure;
/// others need not wait for a disk.
pub const SYNCED: (&str, &str) = ("fsync", "on");

/// A PostgreSQL server that trusts everyone on the loopback, as the user `postgres`.
#[derive(Debug)]
pub struct Server {
    engine: Engine,
    port: Arc<Port>,
    programs: Programs,
    /// Databases that no test needs any more. They go with the next one that is made, which saves a process.
    left: Mutex<Vec<String>>,
    /// Kinds of databases that are copied for each test, and the names of the originals.
    originals: Mutex<HashMap<&'static str, String>>,
}

impl Server {
    /// Starts an empty server that leaves syncing to the system: it survives a kill, and not a loss of power.
    pub fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// Starts an empty server with further lines of its configuration, such as `("enable_hashjoin", "off")`.
    pub fn start_with(settings: &[(&str, &str)]) -> Result<Self> {
        let programs = Programs::find()?;
        on_free_ports(|| {
            let home = match settings.contains(&SYNCED) {
                true => Home::new()?,
                false => Home::in_memory()?,
            };
            programs.give(home.path())?;
            let data = data_in(home.path());
            programs.make_cluster(&data)?;
            let port = Arc::new(Port::free()?);
            configure(&data, &port, settings)?;
            Self::run(programs.clone(), home, port)
        })
    }

    /// Starts a server that follows this one. The port may be that of a dead server which it replaces.
    pub(super) fn start_standby(&self, port: Arc<Port>) -> Result<Self> {
        let programs = self.programs.clone();
        let home = Home::in_memory()?;
        programs.give(home.path())?;
        let data = data_in(home.path());
        programs.copy_cluster(self.port.number(), &data)?;
        configure(&data, &port, &[])?;
        Self::run(programs, home, port)
    }

    fn run(programs: Programs, home: Home, port: Arc<Port>) -> Result<Self> {
        let folder = home.path().to_owned();
        let recipe = Recipe {
            name: "PostgreSQL",
            command: {
                let (programs, data) = (programs.clone(), data_in(&folder));
                Box::new(move || {
                    let mut command = programs.as_owner("postgres");
                    command.arg("-D").arg(&data);
                    command
                })
            },
            serves: {
                let (programs, port) = (programs.clone(), port.to_string());
                Box::new(move || {
                    let mut command = programs.client("pg_isready");
                    // By the socket in its folder, which nobody else can answer on.
                    command.arg("-h").arg(&folder).args(["-p", &port]);
                    output(&mut command).is_ok()
                })
            },
            stop_signal: Signal::INT,
        };
        let engine = Engine::start(home, recipe)?;
        Ok(Self {
            engine,
            port,
            programs,
            left: Mutex::default(),
            originals: Mutex::default(),
        })
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    pub(super) fn claim(&self) -> Arc<Port> {
        Arc::clone(&self.port)
    }

    /// The address of a database on it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs statements in the database `postgres` and returns their rows as plain text, columns separated by `|`.
    pub fn sql(&self, statements: &str) -> Result<String> {
        self.sql_in("postgres", statements)
    }

    fn sql_in(&self, database: &str, statements: &str) -> Result<String> {
        self.run_each(database, &[statements.to_owned()])
    }

    /// Runs them one after the other, each in a transaction of its own.
    fn run_each(&self, database: &str, statements: &[String]) -> Result<String> {
        let mut command = self.programs.client("psql");
        command
            .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d"])
            .arg(self.url(database));
        for statement in statements {
            command.args(["-c", statement]);
        }
        Ok(output(&mut command)?.trim_end().to_owned())
    }

    /// Kills, as `kill -9` does, one of its processes that works in this database at the moment. The server ends all
    /// the others then and recovers from its log, which is waited for. Tells whether there was one.
    pub fn kill_busy_backend(&self, database: &str) -> Result<bool> {
        let busy = format!(
            "select pid from pg_stat_activity where datname = '{database}' and state <> 'idle' limit 1"
        );
        let checkpointer = self.sql(CHECKPOINTER)?;
        let pid = self.sql(&busy)?.parse().ok().and_then(Pid::from_raw);
        // It may have ended by itself meanwhile.
        if pid.is_none_or(|pid| kill_process(pid, Signal::KILL).is_err()) {
            return Ok(false);
        }
        let since = Instant::now();
        // Another one comes with the recovery. Nobody is let in before its end.
        while self
            .sql(CHECKPOINTER)
            .map_or(true, |now| now == checkpointer)
        {
            ensure!(since.elapsed() < RECOVERS_WITHIN, "no recovery");
            thread::sleep(LOOK_EVERY);
        }
        Ok(true)
    }

    /// Kills so many of its processes while they work in this database. Whoever keeps them busy must go on until this
    /// returns.
    pub fn kill_busy_backends(&self, database: &str, count: usize) -> Result<()> {
        for number in 0..count {
            // So that some work is done between two of them.
            thread::sleep(KILL_PAUSE);
            let since = Instant::now();
            while !self.kill_busy_backend(database)? {
                ensure!(
                    since.elapsed() < BUSY_WITHIN,
                    "nobody to kill in {database} after {number} kills"
                );
                thread::sleep(LOOK_EVERY);
            }
        }
        Ok(())
    }

    /// Makes an empty database that no other test has. It is gone some time after the last of its handles.
    pub fn database(self: &Arc<Self>, name: &str) -> Result<Database> {
        let [database] = self.make_databases(name, "template1")?;
        Ok(database)
    }

    /// Makes copies of a database that `prepare` was given the address of and made ready, once per kind: quicker than to
    /// make each of them ready. They are gone some time after the last of their handles.
    pub fn copies<const N: usize, F: Future<Output = Result<()>>>(
        self: &Arc<Self>,
        kind: &'static str,
        prepare: impl FnOnce(String) -> F + Send,
    ) -> Result<[Database; N]> {
        let original = self.original(kind, prepare)?;
        self.make_databases(kind, &original)
    }

    fn original<F: Future<Output = Result<()>>>(
        self: &Arc<Self>,
        kind: &'static str,
        prepare: impl FnOnce(String) -> F + Send,
    ) -> Result<String> {
        let mut originals = lock(&self.originals);
        if let Some(name) = originals.get(kind) {
            return Ok(name.clone());
        }
        let name = unique(kind);
        self.sql(&format!("create database {name}"))?;
        let url = self.url(&name);
        // On a thread of its own: tests have a runtime, in which nothing may wait.
        let prepare = || Runtime::new()?.block_on(prepare(url));
        let prepared = thread::scope(|scope| scope.spawn(prepare).join());
        prepared.unwrap_or_else(|_| bail!("preparing {kind} panicked"))?;
        // A database that is connected to cannot be copied.
        let close = format!("alter database {name} allow_connections false");
        let end = format!(
            "select pg_terminate_backend(pid, 60000) from pg_stat_activity where datname = '{name}'"
        );
        self.run_each("postgres", &[close, end])?;
        originals.insert(kind, name.clone());
        Ok(name)
    }

    fn make_databases<const N: usize>(
        self: &Arc<Self>,
        name: &str,
        template: &str,
    ) -> Result<[Database; N]> {
        let names = [(); N].map(|()| unique(name));
        let mut statements: Vec<String> = lock(&self.left)
            .drain(..)
            .map(|left| drop_of(&left))
            .collect();
        // The other way to make one, the only one before PostgreSQL 15, writes every page of it to the log.
        let quick =
            |name| format!("create database {name} template {template} strategy = file_copy");
        statements.extend(names.iter().map(quick));
        self.run_each("postgres", &statements).or_else(|_| {
            let usual = |name| format!("create database {name} template {template}");
            self.run_each("postgres", &names.iter().map(usual).collect::<Vec<_>>())
        })?;
        Ok(names.map(|name| {
            let server = Arc::clone(self);
            Database(Arc::new(OwnDatabase { server, name }))
        }))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whoever still has a connection to it is a task that its test has left behind.
fn drop_of(database: &str) -> String {
    format!("drop database if exists {database} with (force)")
}

controls_engine!(Server);

/// A database of one's own on a shared server.
#[derive(Clone, Debug)]
pub struct Database(Arc<OwnDatabase>);

#[derive(Debug)]
struct OwnDatabase {
    server: Arc<Server>,
    name: String,
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        lock(&self.server.left).push(std::mem::take(&mut self.name));
    }
}

impl Database {
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    #[must_use]
    pub fn url(&self) -> String {
        self.0.server.url(self.name())
    }

    /// Runs statements and returns their rows as plain text, columns separated by `|`.
    pub fn sql(&self, statements: &str) -> Result<String> {
        self.0.server.sql_in(self.name(), statements)
    }
}

fn data_in(folder: &Path) -> PathBuf {
    folder.join("data")
}

/// Appends to the configuration; of two lines for one setting, the later holds.
fn configure(data: &Path, port: &Port, settings: &[(&str, &str)]) -> Result<()> {
    let file = data.join("postgresql.conf");
    let folder = data.parent().context("data without a folder")?;
    let mut text = fs::read_to_string(&file)?;
    let port = port.to_string();
    let folder = folder.display().to_string();
    let connections = CONNECTIONS_MAX.to_string();
    let ours = [
        ("listen_addresses", "127.0.0.1"),
        ("port", &port),
        ("unix_socket_directories", &folder),
        ("max_connections", &connections),
        // Safe against a killed process, which is all that tests do to it.
        ("fsync", "off"),
        ("wal_keep_size", "64MB"),
        // A standby sleeps this long before it notices that it was promoted.
        ("wal_retrieve_retry_interval", "100ms"),
    ];
    for (name, value) in ours.iter().chain(settings) {
        text += &format!("{name} = '{value}'\n");
    }
    Ok(fs::write(file, text)?)
}
