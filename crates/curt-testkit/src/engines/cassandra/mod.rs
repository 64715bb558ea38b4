//! Cassandra: nodes on 127.0.0.1, 127.0.0.2 and so on, all on the same port, as its clients expect.

mod command;
mod settings;
mod wire;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

use super::engine::Recipe;
use super::home::Home;
use super::port::on_free_ports;
use super::shared::Shared;
use super::{Engine, Missing, Port, cache};
use command::Machine;

const CASSANDRA: Missing = Missing {
    engine: "Cassandra",
    install: "apt-get install maven, then scripts/engines.sh",
};
/// More would need more addresses than one byte holds, and far more memory than tests have.
const NODES_MAX: usize = 9;

/// The single node that all tests of this process share, each in a keyspace of its own: see [`unique`](super::unique).
pub fn shared() -> Result<Arc<Cluster>> {
    static SHARED: Shared<Cluster> = Shared::new();
    SHARED.get(|| Cluster::start(1))
}

/// A few nodes, counted from 0.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
    ports: Arc<Ports>,
}

impl Cluster {
    /// Starts this many nodes one after the other, which takes seconds each, and returns when all serve.
    pub fn start(count: usize) -> Result<Self> {
        ensure!((1..=NODES_MAX).contains(&count), "{count} nodes");
        on_free_ports(|| {
            let ports = Arc::new(Ports::free()?);
            let start = |index| Node::start(index, &ports, count);
            Ok(Self {
                nodes: (0..count).map(start).collect::<Result<_>>()?,
                ports: Arc::clone(&ports),
            })
        })
    }

    /// `127.0.0.1:1,127.0.0.2:1`, as clients take it.
    #[must_use]
    pub fn addresses(&self) -> String {
        let addresses: Vec<String> = (0..self.nodes.len())
            .map(|index| self.ports.client_address(index).to_string())
            .collect();
        addresses.join(",")
    }

    /// A node, to be killed, paused or started again.
    pub fn node_mut(&mut self, index: usize) -> Result<&mut Engine> {
        let node = self.nodes.get_mut(index).context("no such node")?;
        Ok(&mut node.engine)
    }

    /// Whether a node answers clients now.
    pub fn serves(&self, index: usize) -> Result<bool> {
        let node = self.nodes.get(index).context("no such node")?;
        Ok(node.engine.serves())
    }
}

/// Those that all nodes have in common, on addresses of their own.
#[derive(Debug)]
struct Ports {
    client: Port,
    storage: Port,
}

impl Ports {
    fn free() -> Result<Self> {
        Ok(Self {
            client: Port::free()?,
            storage: Port::free()?,
        })
    }

    fn client_address(&self, index: usize) -> SocketAddr {
        (host(index), self.client.number()).into()
    }
}

/// The loopback has a whole network of addresses.
fn host(index: usize) -> Ipv4Addr {
    let number = u8::try_from(index + 1).unwrap_or(u8::MAX);
    Ipv4Addr::new(127, 0, 0, number)
}

#[derive(Debug)]
struct Node {
    engine: Engine,
    /// For its administration, which nobody uses, but which it insists on.
    _administration: Port,
}

impl Node {
    fn start(index: usize, ports: &Ports, count: usize) -> Result<Self> {
        let machine = Machine {
            java: CASSANDRA.program("java")?,
            jars: cache::jars(&CASSANDRA, "cassandra")?,
            memory_agent: cache::jar(&CASSANDRA, "cassandra", "jamm-")?,
            is_alone: count == 1,
        };
        let home = Home::new()?;
        let folder = home.path().to_owned();
        let administration = Port::free()?;
        let number = administration.number();
        fs::write(
            folder.join("cassandra.yaml"),
            settings::of_node(host(index), ports, &folder),
        )?;
        fs::write(folder.join("logback.xml"), settings::LOGGING)?;
        let address = ports.client_address(index);
        let recipe = Recipe {
            name: "Cassandra",
            command: Box::new(move || machine.command(&folder, number)),
            serves: Box::new(move || wire::is_supported(address).unwrap_or(false)),
            stop_signal: Signal::TERM,
        };
        Ok(Self {
            engine: Engine::start(home, recipe)?,
            _administration: administration,
        })
    }
}
