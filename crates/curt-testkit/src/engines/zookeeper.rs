//! ZooKeeper: one server, or an ensemble that elects a leader.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

use super::engine::Recipe;
use super::home::Home;
use super::port::on_free_ports;
use super::shared::Shared;
use super::wait::wait_until;
use super::{Engine, Missing, Port, java};

const ZOOKEEPER: Missing = Missing {
    engine: "ZooKeeper",
    install: "apt-get install zookeeper",
};
const CLASSES: &str = "/usr/share/java/zookeeper.jar";
/// Without it, its log stays empty.
const LOG_CLASSES: &str = "/usr/share/java/slf4j-simple.jar";
const HEAP_MEBIBYTES: u32 = 128;
/// The unit of its times. Sessions last between 2 and 20 of them, so from one second to ten.
const TICK_MILLIS: u32 = 500;
/// How long a server may take to answer one of its four-letter questions.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// The single server that all tests of this process share, each below a path of its own: see
/// [`unique`](super::unique).
pub fn shared() -> Result<Arc<Ensemble>> {
    static SHARED: Shared<Ensemble> = Shared::new();
    SHARED.get(|| Ensemble::start(1))
}

/// A few servers of which one leads, counted from 0.
#[derive(Debug)]
pub struct Ensemble {
    servers: Vec<Server>,
}

impl Ensemble {
    /// Starts this many servers, and returns when all serve.
    pub fn start(count: usize) -> Result<Self> {
        ensure!(count > 0, "an ensemble has servers");
        on_free_ports(|| {
            let ports: Vec<Ports> = (0..count).map(|_| Ports::free()).collect::<Result<_>>()?;
            let mut members = String::new();
            // A single server that knows of no other starts at once, without an election.
            if count > 1 {
                for (index, ports) in ports.iter().enumerate() {
                    members += &ports.member(index);
                }
            }
            let servers = ports.into_iter().enumerate();
            let servers = servers.map(|(index, ports)| Server::launch(index, ports, &members));
            let mut ensemble = Self {
                servers: servers.collect::<Result<_>>()?,
            };
            for server in &mut ensemble.servers {
                server.engine.wait_until_it_serves()?;
            }
            Ok(ensemble)
        })
    }

    /// `127.0.0.1:1,127.0.0.1:2,127.0.0.1:3`, as clients take it. A path to stay below can be appended.
    #[must_use]
    pub fn addresses(&self) -> String {
        let addresses: Vec<String> = self
            .servers
            .iter()
            .map(|server| server.address().to_string())
            .collect();
        addresses.join(",")
    }

    /// Where one server answers clients.
    pub fn address(&self, index: usize) -> Result<SocketAddr> {
        let server = self.servers.get(index).context("no such server")?;
        Ok(server.address())
    }

    /// A server, to be killed, paused or started again. Without a majority, none serves, and a restart waits in vain.
    pub fn server_mut(&mut self, index: usize) -> Result<&mut Engine> {
        let server = self.servers.get_mut(index).context("no such server")?;
        Ok(&mut server.engine)
    }

    /// The index of the server that leads, or serves alone.
    pub fn leader(&self) -> Result<usize> {
        let leads = |server: &Server| {
            matches!(
                mode(server.address()).as_deref(),
                Some("leader" | "standalone")
            )
        };
        let leader = self.servers.iter().position(leads);
        leader.context("no server leads")
    }

    /// Returns the index of the leader as soon as there is one.
    pub fn wait_for_leader(&self) -> Result<usize> {
        wait_until("a server leads", || Ok(self.leader().is_ok()))?;
        self.leader()
    }

    /// Kills the leader as `kill -9` does and returns its index at once: the election is still to come.
    pub fn kill_leader(&mut self) -> Result<usize> {
        let leader = self.leader()?;
        self.servers[leader].engine.kill()?;
        Ok(leader)
    }
}

#[derive(Debug)]
struct Server {
    engine: Engine,
    ports: Ports,
}

impl Server {
    /// Starts it and does not wait: it serves only when most of the others are there too.
    fn launch(index: usize, ports: Ports, members: &str) -> Result<Self> {
        let java = ZOOKEEPER.program("java")?;
        ZOOKEEPER.file(CLASSES.into())?;
        let home = Home::new()?;
        let file = configure(home.path(), index, &ports, members)?;
        let address = ports.client.address();
        let recipe = Recipe {
            name: "ZooKeeper",
            command: Box::new(move || command(&java, &file)),
            serves: Box::new(move || mode(address).is_some()),
            stop_signal: Signal::TERM,
        };
        Ok(Self {
            engine: Engine::launch(home, recipe)?,
            ports,
        })
    }

    fn address(&self) -> SocketAddr {
        self.ports.client.address()
    }
}

#[derive(Debug)]
struct Ports {
    client: Port,
    follow: Port,
    elect: Port,
}

impl Ports {
    fn free() -> Result<Self> {
        Ok(Self {
            client: Port::free()?,
            follow: Port::free()?,
            elect: Port::free()?,
        })
    }

    /// The line by which the others know the server.
    fn member(&self, index: usize) -> String {
        let Self { follow, elect, .. } = self;
        let number = index + 1;
        format!("server.{number}=127.0.0.1:{follow}:{elect}\n")
    }
}

fn configure(folder: &Path, index: usize, ports: &Ports, members: &str) -> Result<PathBuf> {
    let data = folder.join("data");
    fs::create_dir(&data)?;
    fs::write(data.join("myid"), (index + 1).to_string())?;
    let file = folder.join("zoo.cfg");
    let text = format!(
        "tickTime={TICK_MILLIS}\n\
         initLimit=20\n\
         syncLimit=10\n\
         dataDir={}\n\
         clientPort={}\n\
         clientPortAddress=127.0.0.1\n\
         4lw.commands.whitelist=*\n\
         admin.enableServer=false\n\
         {members}",
        data.display(),
        ports.client
    );
    fs::write(&file, text)?;
    Ok(file)
}

fn command(java: &Path, file: &Path) -> Command {
    let mut command = java::command(java, HEAP_MEBIBYTES, &format!("{CLASSES}:{LOG_CLASSES}"));
    command
        .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        // Safe against a killed process, which is all that tests do to it.
        .arg("-Dzookeeper.forceSync=no")
        .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
        .arg(file);
    command
}

/// What the server is, once it serves: it answers simpler questions before.
fn mode(address: SocketAddr) -> Option<String> {
    let answer = ask(address, "srvr").ok()?;
    let mode = answer
        .lines()
        .find_map(|line| line.strip_prefix("Mode: "))?;
    Some(mode.to_owned())
}

/// Asks one of the questions of four letters.
fn ask(address: SocketAddr, question: &str) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIME_MAX)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    stream.write_all(question.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
