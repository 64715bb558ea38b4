//! Memcached.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;

use super::engine::{Recipe, controls_engine};
use super::home::Home;
use super::port::on_free_ports;
use super::{Engine, Missing, Port};

const MEMCACHED: Missing = Missing {
    engine: "Memcached",
    install: "apt-get install memcached",
};
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// A Memcached server, empty again after every restart. It starts in milliseconds, so none is shared.
#[derive(Debug)]
pub struct Server {
    engine: Engine,
    port: Port,
}

impl Server {
    /// Starts a server with this much memory.
    pub fn start(memory_mebibytes: u32) -> Result<Self> {
        let program = MEMCACHED.program("memcached")?;
        on_free_ports(|| {
            let home = Home::new()?;
            let port = Port::free()?;
            let address = port.address();
            let number = port.to_string();
            let program = program.clone();
            let recipe = Recipe {
                name: "Memcached",
                command: Box::new(move || command(&program, &number, memory_mebibytes)),
                serves: Box::new(move || {
                    version(address).is_ok_and(|text| text.starts_with("VERSION "))
                }),
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

    /// `memcached://127.0.0.1:…`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("memcached://{}", self.address())
    }
}

controls_engine!(Server);

fn command(program: &Path, port: &str, memory_mebibytes: u32) -> Command {
    let mut command = Command::new(program);
    command
        .args(["-u", "nobody"]) // refuses to be root, and ignores this where it is not
        .args(["-l", "127.0.0.1", "-p", port, "-t", "2"])
        .args(["-m", &memory_mebibytes.to_string()]);
    command
}

fn version(address: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIME_MAX)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    stream.write_all(b"version\r\nquit\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
