//! HAProxy.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;

use super::engine::{Recipe, controls_engine};
use super::home::Home;
use super::{Engine, Missing};

const HAPROXY: Missing = Missing {
    engine: "HAProxy",
    install: "apt-get install haproxy",
};
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

const DEFAULTS: &str = "\
defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s
";

/// A load balancer with a configuration of the test's own.
#[derive(Debug)]
pub struct Balancer {
    engine: Engine,
    socket: PathBuf,
}

impl Balancer {
    /// Starts it with these `frontend`, `backend` and `listen` sections; their ports are the caller's
    /// [`Port`](super::Port)s. Connections are HTTP and may take ten seconds unless the sections say otherwise.
    pub fn start(sections: &str) -> Result<Self> {
        Self::start_with(&format!("{DEFAULTS}{sections}\n"))
    }

    /// Starts it with a whole configuration; its administration is added.
    pub fn start_with(configuration: &str) -> Result<Self> {
        let program = HAPROXY.program("haproxy")?;
        let home = Home::new()?;
        let socket = home.path().join("socket");
        let file = home.path().join("haproxy.cfg");
        fs::write(&file, with_administration(&socket, configuration))?;
        let recipe = Recipe {
            name: "HAProxy",
            command: Box::new(move || {
                let mut command = Command::new(&program);
                command.arg("-db").arg("-f").arg(&file);
                command
            }),
            serves: {
                let socket = socket.clone();
                Box::new(move || ask(&socket, "show info").is_ok())
            },
            stop_signal: Signal::TERM,
        };
        let engine = Engine::start(home, recipe)?;
        Ok(Self { engine, socket })
    }

    /// Runs a command of its administration, such as `show servers state`, and returns the answer.
    pub fn run_command(&self, command: &str) -> Result<String> {
        ask(&self.socket, command)
    }
}

controls_engine!(Balancer);

/// Sections of the same kind add up, so this may stand before a configuration that has a `global` of its own.
fn with_administration(socket: &Path, configuration: &str) -> String {
    let socket = socket.display();
    format!("global\n  stats socket {socket} mode 600 level admin\n{configuration}")
}

fn ask(socket: &Path, command: &str) -> Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    writeln!(stream, "{command}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
