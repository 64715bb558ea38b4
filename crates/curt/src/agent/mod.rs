//! The agent that HAProxy asks how much of the load this server should get (`agent-check`).
//!
//! It listens on a port of its own. Whoever connects is told one line, and the connection is closed: `up 75%`, or `drain`
//! while the process is not ready, starting or stopping. HAProxy remembers `drain` until it hears `ready`, also over a
//! restart, and `ready` overrides what an operator told HAProxy; so it is said for [`READY_SAID_FOR`] after the process
//! became ready, and not any more after that.

mod load;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use curt_core::names::event;
use curt_http::server::{LoopLag, bind_alone};
use curt_http::{HttpMetrics, Impact, Readiness, ServerSettings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use self::load::LoadMeter;
use crate::supervisor::Supervisor;

/// Longer than any balancer takes between two questions.
const READY_SAID_FOR: Duration = Duration::from_secs(30);
/// Balancers that are answered at the same time; more are closed without an answer, which changes nothing for them.
const CONNECTIONS_MAX: usize = 32;
/// For one answer and the client's end.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);
/// What a client may have sent (`agent-send`) before it is closed.
const QUESTION_BYTES_MAX: usize = 1_024;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An agent that answers.
pub(crate) struct StartedAgent {
    pub(crate) address: SocketAddr,
    /// Where the server's workers note how late they are.
    pub(crate) loop_lag: Arc<LoopLag>,
}

/// Starts what measures this server's load and tells balancers of it. An error means that nothing can listen there.
pub(crate) fn start(
    listen: SocketAddr,
    server: &ServerSettings,
    ready: &Arc<Readiness>,
    supervisor: &Supervisor,
    metrics: &HttpMetrics,
) -> io::Result<StartedAgent> {
    let workers = server.workers.max(1);
    // Those of the workers, and behind them the one of everything else.
    let lag = Arc::new(LoopLag::new(workers + 1));
    let meter = LoadMeter::new(lag.clone(), metrics.clone(), server.connections_max);
    let meter = Arc::new(meter);
    let agent = Agent::bind(listen, ready.clone(), meter.clone())?;
    let address = agent.address;
    let probed = lag.clone();
    supervisor.start("load", move |stop| async move {
        tokio::select! {
            () = meter.measure(stop) => {}
            () = probed.probe(workers) => {}
        }
    });
    // It goes on while requests drain, so that balancers are told so.
    supervisor.start("agent", |stop| async move {
        if let Err(error) = agent.run(stop).await {
            warn!(event = event::TASK_FAILED, %error, task = "agent", "the agent port failed");
        }
    });
    Ok(StartedAgent {
        address,
        loop_lag: lag,
    })
}

struct Agent {
    listener: TcpListener,
    address: SocketAddr,
    answers: Arc<Answers>,
}

struct Answers {
    ready: Arc<Readiness>,
    load: Arc<LoadMeter>,
    /// Since when the process is ready, without a break.
    ready_since: Mutex<Option<Instant>>,
}

impl Answers {
    fn line(&self) -> String {
        let mut ready_since = self
            .ready_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.ready.impact() == Some(Impact::Unavailable) {
            *ready_since = None;
            return "drain\n".to_owned();
        }
        let since = *ready_since.get_or_insert_with(Instant::now);
        let weight = self.load.weight();
        match since.elapsed() < READY_SAID_FOR {
            true => format!("ready up {weight}%\n"),
            false => format!("up {weight}%\n"),
        }
    }

    async fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.write_all(self.line().as_bytes()).await?;
        stream.shutdown().await?;
        // Closing with unread input would reset the connection, and the answer might be lost.
        let mut question = [0; QUESTION_BYTES_MAX];
        while stream.read(&mut question).await? > 0 {}
        Ok(())
    }
}

impl Agent {
    fn bind(address: SocketAddr, ready: Arc<Readiness>, load: Arc<LoadMeter>) -> io::Result<Self> {
        let listener = bind_alone(address)?;
        let address = listener.local_addr()?;
        let ready_since = Mutex::default();
        let answers = Arc::new(Answers {
            ready,
            load,
            ready_since,
        });
        Ok(Self {
            listener,
            address,
            answers,
        })
    }

    async fn run(self, stop: CancellationToken) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let tracker = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                        continue;
                    };
                    let answers = Arc::clone(&self.answers);
                    tracker.spawn(async move {
                        let answer = answers.answer(stream);
                        if tokio::time::timeout(ANSWER_TIME_MAX, answer).await.is_err() {
                            tracing::trace!("balancer did not close");
                        }
                        drop(place);
                    });
                }
                Err(error) => {
                    warn!(event = event::CONNECTION_FAILED, %error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        tracker.close();
        tracker.wait().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers() -> Answers {
        let lag = Arc::new(LoopLag::new(1));
        Answers {
            ready: Readiness::new(),
            load: Arc::new(LoadMeter::new(lag, HttpMetrics::unregistered(), 100)),
            ready_since: Mutex::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_drains_until_ready_and_says_ready_for_a_while_only() {
        let answers = answers();
        assert_eq!(answers.line(), "drain\n", "nothing is known yet");
        answers.ready.pass("serving");
        assert_eq!(answers.line(), "ready up 100%\n");
        tokio::time::advance(READY_SAID_FOR).await;
        assert_eq!(
            answers.line(),
            "up 100%\n",
            "an operator may have drained it"
        );
        answers.ready.fail("clicks", Impact::Degraded, "disk full");
        assert_eq!(answers.line(), "up 100%\n");
        answers
            .ready
            .fail("serving", Impact::Unavailable, "stopping");
        assert_eq!(answers.line(), "drain\n");
        answers.ready.pass("serving");
        assert_eq!(answers.line(), "ready up 100%\n");
    }

    /// What a balancer hears: nothing, or a reset, when it is one too many.
    async fn ask(address: SocketAddr) -> io::Result<String> {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"tell me\n").await?;
        let mut said = String::new();
        stream.read_to_string(&mut said).await?;
        Ok(said)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn many_silent_clients_do_not_keep_it_from_answering() {
        let Answers { ready, load, .. } = answers();
        ready.pass("serving");
        let agent = Agent::bind("127.0.0.1:0".parse().unwrap(), ready, load).unwrap();
        let address = agent.address;
        let stop = CancellationToken::new();
        let running = tokio::spawn(agent.run(stop.clone()));
        let mut silent = Vec::new();
        for _ in 0..3 * CONNECTIONS_MAX {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        // Their time is over after a second.
        let said = tokio::time::timeout(Duration::from_secs(30), async {
            loop {
                match ask(address).await {
                    Ok(said) if !said.is_empty() => return said,
                    Ok(_) | Err(_) => {}
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        assert_eq!(said.await.unwrap(), "ready up 100%\n");
        drop(silent);
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}
