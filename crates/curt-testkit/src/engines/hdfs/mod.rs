//! HDFS: a name node and a data node.

mod settings;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::command::output;
use super::engine::Recipe;
use super::home::Home;
use super::port::on_free_ports;
use super::shared::Shared;
use super::wait::wait_until;
use super::{Engine, Missing, cache, java};
use crate::http::{Connection, Request};
use settings::Ports;

const HDFS: Missing = Missing {
    engine: "HDFS",
    install: "apt-get install maven, then scripts/engines.sh",
};
const HEAP_MEBIBYTES: u32 = 256;
const NAME_NODE: &str = "org.apache.hadoop.hdfs.server.namenode.NameNode";
const DATA_NODE: &str = "org.apache.hadoop.hdfs.server.datanode.DataNode";
/// Packages of Java that it reaches into, and that Java must be told to let it.
const OPENS: [&str; 11] = [
    "java.io",
    "java.lang",
    "java.lang.reflect",
    "java.math",
    "java.net",
    "java.text",
    "java.util",
    "java.util.concurrent",
    "java.util.zip",
    "sun.security.util",
    "sun.security.x509",
];

/// The file system that all tests of this process share, each in a folder of its own: see [`unique`](super::unique).
pub fn shared() -> Result<Arc<Cluster>> {
    static SHARED: Shared<Cluster> = Shared::new();
    SHARED.get(Cluster::start)
}

/// A file system on one data node, where everyone may do everything.
#[derive(Debug)]
pub struct Cluster {
    name_node: Engine,
    data_node: Engine,
    ports: Ports,
}

impl Cluster {
    /// Starts both, and returns when files can be written.
    pub fn start() -> Result<Self> {
        let machine = Machine::find()?;
        on_free_ports(|| {
            let ports = Ports::free()?;
            let page = ports.page.address();
            let (name_home, data_home) = (Home::new()?, Home::new()?);
            for home in [&name_home, &data_home] {
                settings::write(home.path(), &ports)?;
            }
            output(machine.command(name_home.path(), NAME_NODE).args([
                "-format",
                "-force",
                "-nonInteractive",
            ]))?;
            let name_node =
                machine.start(name_home, NAME_NODE, move || data_nodes(page).is_ok())?;
            let data_node = machine.start(data_home, DATA_NODE, move || {
                data_nodes(page).is_ok_and(|count| count == 1)
            })?;
            Ok(Self {
                name_node,
                data_node,
                ports,
            })
        })
    }

    /// `hdfs://127.0.0.1:…`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("hdfs://{}", self.ports.name.address())
    }

    /// Where it shows its state, and answers over HTTP.
    #[must_use]
    pub fn page(&self) -> SocketAddr {
        self.ports.page.address()
    }

    /// What knows the files' names, to be killed, paused or started again.
    pub fn name_node_mut(&mut self) -> &mut Engine {
        &mut self.name_node
    }

    /// What holds the files' bytes, to be killed, paused or started again. Its death is noticed after minutes, unless
    /// the name node is started again too.
    pub fn data_node_mut(&mut self) -> &mut Engine {
        &mut self.data_node
    }

    /// Returns when the name node, just started again, has heard from the data node.
    pub fn wait_until_writable(&self) -> Result<()> {
        wait_until("the data node is known", || {
            Ok(self.data_nodes().is_ok_and(|count| count == 1))
        })
    }

    /// How many data nodes the name node believes to be there.
    pub fn data_nodes(&self) -> Result<u64> {
        data_nodes(self.page())
    }
}

#[derive(Clone, Debug)]
struct Machine {
    java: PathBuf,
    jars: String,
}

impl Machine {
    fn find() -> Result<Self> {
        Ok(Self {
            java: HDFS.program("java")?,
            jars: cache::jars(&HDFS, "hdfs")?,
        })
    }

    fn command(&self, folder: &Path, class: &str) -> Command {
        let shown = folder.display();
        let class_path = format!("{shown}/conf:{}", self.jars);
        let mut command = java::command(&self.java, HEAP_MEBIBYTES, &class_path);
        command
            .args(OPENS.map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED")))
            .arg(format!("-Dhadoop.log.dir={shown}"))
            .arg(class);
        command
    }

    fn start(
        &self,
        home: Home,
        class: &'static str,
        serves: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Engine> {
        let (machine, folder) = (self.clone(), home.path().to_owned());
        let recipe = Recipe {
            name: "HDFS",
            command: Box::new(move || machine.command(&folder, class)),
            serves: Box::new(serves),
            stop_signal: Signal::TERM,
        };
        Engine::start(home, recipe)
    }
}

/// How many data nodes the name node believes to be there; an error before it serves.
fn data_nodes(page: SocketAddr) -> Result<u64> {
    let state = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState";
    let answer = Connection::open(page)?.send(&Request::get(state))?;
    let answer = answer.json()?;
    let count = answer.pointer("/beans/0/NumLiveDataNodes");
    let count = count.and_then(serde_json::Value::as_u64);
    count.context("no number of data nodes")
}
