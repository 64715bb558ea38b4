//! DynamoDB Local: DynamoDB as its makers give it to those who test against it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;

use super::engine::{Recipe, controls_engine};
use super::home::Home;
use super::port::on_free_ports;
use super::shared::Shared;
use super::{Engine, Missing, Port, cache, java};

const DYNAMODB: Missing = Missing {
    engine: "DynamoDB Local",
    install: "apt-get install maven, then scripts/engines.sh",
};
const MAIN: &str = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner";
const HEAP_MEBIBYTES: u32 = 384;
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// The server that all tests of this process share, each with tables of its own: see [`unique`](super::unique).
pub fn shared() -> Result<Arc<Server>> {
    static SHARED: Shared<Server> = Shared::new();
    SHARED.get(Server::start)
}

/// A server with its data in memory: it is empty again after every restart.
#[derive(Debug)]
pub struct Server {
    engine: Engine,
    port: Port,
}

impl Server {
    pub fn start() -> Result<Self> {
        let java = DYNAMODB.program("java")?;
        let jars = cache::jars(&DYNAMODB, "dynamodb")?;
        on_free_ports(|| {
            let home = Home::new()?;
            let port = Port::free()?;
            let (address, number) = (port.address(), port.to_string());
            let (java, jars) = (java.clone(), jars.clone());
            let recipe = Recipe {
                name: "DynamoDB Local",
                command: Box::new(move || command(&java, &jars, &number)),
                serves: Box::new(move || answers(address).unwrap_or(false)),
                stop_signal: Signal::TERM,
            };
            let engine = Engine::start(home, recipe)?;
            Ok(Self { engine, port })
        })
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// An address for tables that begin with `prefix`. It takes any region and any credentials.
    #[must_use]
    pub fn url(&self, prefix: &str) -> String {
        url(self.address(), prefix)
    }
}

controls_engine!(Server);

/// An address for tables that begin with `prefix`, where the service or a way to it is at `address`.
#[must_use]
pub fn url(address: SocketAddr, prefix: &str) -> String {
    format!("dynamodb://test:test@local/{prefix}?endpoint=http://{address}")
}

fn command(java: &Path, jars: &str, port: &str) -> Command {
    let mut command = java::command(java, HEAP_MEBIBYTES, jars);
    command
        .arg(MAIN)
        .args(["-inMemory", "-disableTelemetry", "-port", port]);
    command
}

/// Whether it speaks HTTP, whatever it says: requests without a signature are refused.
fn answers(address: SocketAddr) -> Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIME_MAX)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: local\r\nConnection: close\r\n\r\n")?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer)?;
    Ok(answer == *b"HTTP/1.1")
}
