//! MinIO, a store of objects that speaks the protocol of S3.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;

use anyhow::Result;
use rustix::process::Signal;

use super::engine::{Recipe, controls_engine};
use super::home::Home;
use super::port::on_free_ports;
use super::shared::Shared;
use super::{Engine, Missing, Port, cache};
use crate::http::{Connection, Request};

const MINIO: Missing = Missing {
    engine: "MinIO",
    install: "scripts/engines.sh where there is Go to build it",
};
const USER: &str = "curt";
const PASSWORD: &str = "only-for-tests";

/// The server that all tests of this process share, each in a bucket of its own: see [`unique`](super::unique), with a
/// name that a bucket may have.
pub fn shared() -> Result<Arc<Server>> {
    static SHARED: Shared<Server> = Shared::new();
    SHARED.get(Server::start)
}

/// A MinIO server on one folder.
#[derive(Debug)]
pub struct Server {
    engine: Engine,
    port: Port,
}

impl Server {
    /// Starts an empty server.
    pub fn start() -> Result<Self> {
        let program = cache::program(&MINIO, "minio")?;
        on_free_ports(|| {
            let home = Home::new()?;
            let (port, console) = (Port::free()?, Port::free()?);
            let address = port.address();
            let data = home.path().join("data");
            let program = program.clone();
            let recipe = Recipe {
                name: "MinIO",
                command: Box::new(move || {
                    let mut command = Command::new(&program);
                    command
                        .env("MINIO_ROOT_USER", USER)
                        .env("MINIO_ROOT_PASSWORD", PASSWORD)
                        .args(["server", "--address", &address.to_string()])
                        .args(["--console-address", &console.address().to_string()])
                        .arg(&data);
                    command
                }),
                serves: Box::new(move || is_ready(address).unwrap_or(false)),
                stop_signal: Signal::TERM,
            };
            let engine = Engine::start(home, recipe)?;
            Ok(Self { engine, port })
        })
    }

    /// `http://127.0.0.1:…`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.port.address())
    }

    /// The name and the secret that it lets in, as an access key has them.
    #[must_use]
    pub fn credentials(&self) -> (&'static str, &'static str) {
        (USER, PASSWORD)
    }

    /// Makes a bucket that no other test has, and returns its name.
    pub fn bucket(&self, name: &str) -> Result<String> {
        let name = super::unique(name).replace('_', "-");
        // To it, a folder is a bucket.
        std::fs::create_dir(self.folder().join("data").join(&name))?;
        Ok(name)
    }
}

controls_engine!(Server);

/// Whether it refuses a stranger. Before it serves it fails instead, even when it calls itself healthy.
fn is_ready(address: SocketAddr) -> Result<bool> {
    let answer = Connection::open(address)?.send(&Request::get("/"))?;
    Ok(answer.status == 403)
}
