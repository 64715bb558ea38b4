use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::server::Client;
use super::{REDIS, Server};
use crate::engines::engine::Recipe;
use crate::engines::home::Home;
use crate::engines::port::on_free_ports;
use crate::engines::wait::wait_until;
use crate::engines::{Engine, Port};

/// What the Sentinels call the primary.
pub const MASTER_NAME: &str = "mymaster";
/// How many there are, and how many of them make a failover.
const SENTINELS: usize = 3;
const QUORUM: usize = 2;
/// How long a primary must be silent to be taken for dead.
const SILENCE_MILLIS: u32 = 1_000;
/// The account that replicas follow under. Locking it is what pauses replication.
const FOLLOWER: &str = "follower";

/// A primary, its replicas, and three Sentinels that make a replica the primary when that is silent for a second. Two
/// seconds after a kill, the new one can be written to.
#[derive(Debug)]
pub struct Sentinels {
    servers: Vec<Server>,
    sentinels: Vec<Sentinel>,
}

impl Sentinels {
    /// Starts all of them, and returns when the Sentinels know each other and every replica follows.
    pub fn start(replicas: usize) -> Result<Self> {
        let account = format!("user {FOLLOWER} on >{FOLLOWER} ~* &* +@all");
        let settings = [
            account,
            format!("masteruser {FOLLOWER}"),
            format!("masterauth {FOLLOWER}"),
        ];
        let settings = settings.each_ref().map(String::as_str);
        let primary = Server::start_with(&settings)?;
        let port = primary.port();
        let follow = format!("replicaof 127.0.0.1 {port}");
        let mut servers = vec![primary];
        for _ in 0..replicas {
            let lines = [&settings[..], &[&follow]].concat();
            servers.push(Server::start_with(&lines)?);
        }
        let sentinels = (0..SENTINELS)
            .map(|_| Sentinel::start(port))
            .collect::<Result<_>>()?;
        let started = Self { servers, sentinels };
        started.wait_until_complete()?;
        Ok(started)
    }

    /// `redis+sentinel://h1,h2,h3/name`.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self
            .sentinel_ports()
            .iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        format!("redis+sentinel://{}/{MASTER_NAME}", addresses.join(","))
    }

    #[must_use]
    pub fn sentinel_ports(&self) -> Vec<u16> {
        self.sentinels.iter().map(|one| one.port.number()).collect()
    }

    /// The servers, of which any may be the primary.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// A server, to be paused or started again after it was killed.
    pub fn server_mut(&mut self, index: usize) -> Result<&mut Server> {
        self.servers.get_mut(index).context("no such server")
    }

    /// A Sentinel, to be killed, paused or started again.
    pub fn sentinel_mut(&mut self, index: usize) -> Result<&mut Engine> {
        let sentinel = self.sentinels.get_mut(index).context("no such Sentinel")?;
        Ok(&mut sentinel.engine)
    }

    /// The index of the server that a majority of the Sentinels take for the primary.
    pub fn primary(&self) -> Result<usize> {
        let agreed = |port: u16| {
            let say = self
                .sentinels
                .iter()
                .filter(|one| one.primary() == Some(port));
            say.count() >= QUORUM
        };
        let found = self.servers.iter().position(|one| agreed(one.port()));
        found.context("the Sentinels agree on no primary")
    }

    /// Kills the primary as `kill -9` does and returns its index at once: the failover is still to come.
    pub fn kill_primary(&mut self) -> Result<usize> {
        let index = self.primary()?;
        self.servers[index].kill()?;
        Ok(index)
    }

    /// Returns the index of the primary as soon as it is another one than `former` and can be written to.
    pub fn wait_for_failover(&self, former: usize) -> Result<usize> {
        let mut new = former;
        wait_until("a replica is the primary", || {
            new = self.primary().unwrap_or(former);
            Ok(new != former
                && self.servers[new]
                    .run_command(&["ROLE"])?
                    .starts_with("master"))
        })?;
        Ok(new)
    }

    /// Keeps all replicas from hearing of what is written from now on, until the next failover or
    /// [`resume_replication`](Self::resume_replication). The Sentinels still promote one of them, for the first ten
    /// seconds: then they think its data too old.
    pub fn pause_replication(&self) -> Result<()> {
        let primary = &self.servers[self.primary()?];
        primary.run_command(&["ACL", "SETUSER", FOLLOWER, "off"])?;
        primary.run_command(&["CLIENT", "KILL", "TYPE", "replica"])?;
        Ok(())
    }

    pub fn resume_replication(&self) -> Result<()> {
        let primary = &self.servers[self.primary()?];
        primary.run_command(&["ACL", "SETUSER", FOLLOWER, "on"])?;
        Ok(())
    }

    /// Returns when every Sentinel sees all others and all replicas, and every replica has all of the primary's data.
    pub fn wait_until_complete(&self) -> Result<()> {
        let replicas = self.servers.len() - 1;
        wait_until("replicas and Sentinels know each other", || {
            let know = |one: &Sentinel| one.knows(replicas).unwrap_or(false);
            let primary = self.primary().ok().map(|index| &self.servers[index]);
            let Some(primary) = primary.filter(|_| self.sentinels.iter().all(know)) else {
                return Ok(false);
            };
            let info = primary.run_command(&["INFO", "replication"])?;
            Ok(info.matches("state=online").count() == replicas)
        })
    }
}

#[derive(Debug)]
struct Sentinel {
    engine: Engine,
    port: Port,
    client: Client,
}

impl Sentinel {
    fn start(primary: u16) -> Result<Self> {
        on_free_ports(|| {
            let program = REDIS.program("redis-server")?;
            let home = Home::new()?;
            let port = Port::free()?;
            let client = Client::new(port.number(), None)?;
            let file = home.path().join("sentinel.conf");
            fs::write(&file, configuration(&port, primary))?;
            let recipe = Recipe {
                name: "Redis Sentinel",
                command: Box::new(move || {
                    let mut command = Command::new(&program);
                    command.arg(&file).arg("--sentinel");
                    command
                }),
                serves: {
                    let client = client.clone();
                    Box::new(move || client.run(&["PING"]).is_ok())
                },
                stop_signal: Signal::TERM,
            };
            Ok(Self {
                engine: Engine::start(home, recipe)?,
                port,
                client,
            })
        })
    }

    /// The port of the server that it takes for the primary.
    fn primary(&self) -> Option<u16> {
        self.engine.pid()?;
        let ask = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME];
        let address = self.client.run(&ask).ok()?;
        address.lines().nth(1)?.parse().ok()
    }

    /// Whether it sees all other Sentinels and this many replicas.
    fn knows(&self, replicas: usize) -> Result<bool> {
        let answer = self.client.run(&["SENTINEL", "MASTER", MASTER_NAME])?;
        let lines: Vec<&str> = answer.lines().collect();
        let is = |name: &str, number: usize| {
            let mut pairs = lines.chunks_exact(2);
            pairs.any(|pair| pair[0] == name && pair[1] == number.to_string())
        };
        Ok(is("num-slaves", replicas) && is("num-other-sentinels", SENTINELS - 1))
    }
}

fn configuration(port: &Port, primary: u16) -> String {
    format!(
        "port {port}\n\
         bind 127.0.0.1\n\
         sentinel monitor {MASTER_NAME} 127.0.0.1 {primary} {QUORUM}\n\
         sentinel down-after-milliseconds {MASTER_NAME} {SILENCE_MILLIS}\n\
         sentinel failover-timeout {MASTER_NAME} 5000\n\
         sentinel parallel-syncs {MASTER_NAME} 1\n"
    )
}
