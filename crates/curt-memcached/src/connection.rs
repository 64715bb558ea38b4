//! One connection, on which requests follow each other without waiting for answers.

use std::collections::VecDeque;

use curt_core::{ErrorKind, PortError, PortResult};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::protocol::{Reply, read_reply};
use super::{BACKEND, MemcachedSettings};

const OP: &str = "connect";
/// Requests that wait to be written; callers beyond wait for room.
const WAITING_MAX: usize = 1_024;
/// Requests whose answers are awaited; no more are written until some came.
const UNANSWERED_MAX: usize = 4_096;
/// Requests that are written together.
const TOGETHER_MAX: usize = 128;
const READ_BYTES: usize = 16 * 1_024;

/// Clones use the same connection. It is closed with the last of them.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    requests: mpsc::Sender<Request>,
}

#[derive(Debug)]
struct Request {
    commands: Vec<u8>,
    answers: usize,
    reply: oneshot::Sender<Vec<Reply>>,
}

/// A request whose answers are awaited.
struct Unanswered {
    left: usize,
    replies: Vec<Reply>,
    reply: oneshot::Sender<Vec<Reply>>,
    sent: Instant,
}

/// How a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// Nothing was sent.
    NotSent,
    /// The connection ended before the answer came.
    NoAnswer,
}

impl CallFailure {
    pub(crate) fn into_port_error(self, op: &'static str) -> PortError {
        let kind = match self {
            Self::NotSent => ErrorKind::Unavailable,
            Self::NoAnswer => ErrorKind::Timeout,
        };
        PortError::new(kind, BACKEND, op, "the connection was lost")
    }
}

impl Connection {
    /// Connects, and asks for a sign of life: the system accepts connections for a server that hangs, too.
    pub(crate) async fn open(
        place: (String, u16),
        settings: MemcachedSettings,
    ) -> PortResult<Self> {
        let connecting = async {
            let stream = TcpStream::connect((&*place.0, place.1)).await?;
            stream.set_nodelay(true)?;
            Ok::<TcpStream, std::io::Error>(stream)
        };
        let stream = match timeout(settings.connect_timeout, connecting).await {
            Ok(stream) => stream.map_err(|error| unreachable(error.to_string()))?,
            Err(_) => return Err(unreachable("no connection in time".to_owned())),
        };
        let (requests, waiting) = mpsc::channel(WAITING_MAX);
        let (read, write) = stream.into_split();
        let driver = Driver {
            write,
            unanswered: VecDeque::new(),
            received: Vec::with_capacity(READ_BYTES),
            settings,
        };
        #[expect(clippy::disallowed_methods, reason = "ends with the last sender")]
        tokio::spawn(driver.run(read, waiting));
        let connection = Self { requests };
        let alive = connection.call(b"mn\r\n".to_vec(), 1);
        match timeout(settings.connect_timeout, alive).await {
            Ok(Ok(replies)) if replies == [Reply::Done] => Ok(connection),
            _ => Err(unreachable("the server does not answer".to_owned())),
        }
    }

    /// Sends commands and returns their answers. Dropped while it waits: the answers are read and dropped.
    pub(crate) async fn call(
        &self,
        commands: Vec<u8>,
        answers: usize,
    ) -> Result<Vec<Reply>, CallFailure> {
        let (reply, answer) = oneshot::channel();
        let request = Request {
            commands,
            answers,
            reply,
        };
        let sent = self.requests.send(request).await;
        sent.map_err(|_| CallFailure::NotSent)?;
        answer.await.map_err(|_| CallFailure::NoAnswer)
    }
}

fn unreachable(detail: String) -> PortError {
    PortError::new(ErrorKind::Unavailable, BACKEND, OP, detail)
}

/// The task that writes requests and reads answers.
struct Driver {
    write: OwnedWriteHalf,
    unanswered: VecDeque<Unanswered>,
    received: Vec<u8>,
    settings: MemcachedSettings,
}

/// Why a connection ends.
struct Ended(String);

impl Driver {
    /// Ends with an error, or when nobody can send requests any more. Callers that wait get none.
    async fn run(mut self, mut read: OwnedReadHalf, mut waiting: mpsc::Receiver<Request>) {
        let mut batch = Vec::with_capacity(TOGETHER_MAX);
        loop {
            let has_room = self.unanswered.len() < UNANSWERED_MAX;
            let oldest = self.unanswered.front().map(|request| request.sent);
            let late_at = oldest.map(|sent| sent + self.settings.answer_timeout);
            let step = tokio::select! {
                taken = waiting.recv_many(&mut batch, TOGETHER_MAX), if has_room => match taken {
                    0 => return,
                    _ => self.write_all(&mut batch).await,
                },
                read = read.read_buf(&mut self.received) => match read {
                    Ok(0) => Err(Ended("the server closed the connection".to_owned())),
                    Ok(_) => self.take_replies(),
                    Err(error) => Err(Ended(error.to_string())),
                },
                () = sleep_until(late_at.unwrap_or_else(Instant::now)), if late_at.is_some() => {
                    Err(Ended("no answer in time".to_owned()))
                }
            };
            if let Err(Ended(why)) = step {
                tracing::debug!(why, "memcached connection ended");
                return;
            }
        }
    }

    async fn write_all(&mut self, batch: &mut Vec<Request>) -> Result<(), Ended> {
        let mut bytes = Vec::new();
        let sent = Instant::now();
        for request in batch.drain(..) {
            bytes.extend(&request.commands);
            self.unanswered.push_back(Unanswered {
                left: request.answers,
                replies: Vec::with_capacity(request.answers),
                reply: request.reply,
                sent,
            });
        }
        match timeout(self.settings.answer_timeout, self.write.write_all(&bytes)).await {
            Ok(written) => written.map_err(|error| Ended(error.to_string())),
            Err(_) => Err(Ended("nothing could be sent in time".to_owned())),
        }
    }

    fn take_replies(&mut self) -> Result<(), Ended> {
        let mut taken = 0;
        loop {
            let reply = read_reply(&self.received[taken..]);
            let Some((reply, length)) = reply.map_err(|_| Ended("not an answer".to_owned()))?
            else {
                break;
            };
            taken += length;
            self.deliver(reply)?;
        }
        self.received.drain(..taken);
        Ok(())
    }

    fn deliver(&mut self, reply: Reply) -> Result<(), Ended> {
        let Some(request) = self.unanswered.front_mut() else {
            return Err(Ended("an answer that nobody asked for".to_owned()));
        };
        // Figures come one by one, and the end of them is the answer.
        let is_last_part = !matches!(reply, Reply::Stat(_));
        request.replies.push(reply);
        request.left -= usize::from(is_last_part);
        if request.left == 0
            && let Some(request) = self.unanswered.pop_front()
        {
            // Nobody may wait any more.
            request.reply.send(request.replies).ok();
        }
        Ok(())
    }
}
