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
        let program = HAPROXY.program("haproxy")?;
        let home = Home::new()?;
        let socket = home.path().join("socket");
        let file = home.path().join("haproxy.cfg");
        fs::write(&file, configuration(&socket, sections))?;
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

fn configuration(socket: &Path, sections: &str) -> String {
    format!(
        "global\n\
         \x20 stats socket {} mode 600 level admin\n\
         defaults\n\
         \x20 mode http\n\
         \x20 timeout connect 1s\n\
         \x20 timeout client 10s\n\
         \x20 timeout server 10s\n\
         {sections}\n",
        socket.display()
    )
}

fn ask(socket: &Path, command: &str) -> Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    writeln!(stream, "{command}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
