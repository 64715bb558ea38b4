//! Invalidations over LISTEN and NOTIFY.
//!
//! The engine keeps the order of commits, loses nothing while a connection lasts, and refuses a message that it cannot
//! keep. So a subscriber numbers messages as they come, and a lost connection is the only gap. A message of many changes
//! is sent in parts, in one transaction, whose parts arrive together.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use curt_adapter_kit::{BufferedFeed, FeedBuffer, link_changes};
use curt_core::ports::{InvalidationFeed, Invalidations, LinkChange};
use curt_core::{Clock as _, ErrorKind, PortError, PortResult, SystemClock};
use deadpool_postgres::ClientWrapper;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::engine::{Engine, Receive, Step};
use super::failure::BACKEND;

const LISTEN: &str = "LISTEN curt_invalidations";
const NOTIFY: &str = "SELECT pg_notify('curt_invalidations', part) FROM unnest($1::text[]) AS part";
const SUBSCRIBE: &str = "subscribe to invalidations";
/// A payload has less than 8,000 bytes; a change takes about 100 at most, and the numbers of the part take a few.
const PART_BYTES_MAX: usize = 7_800;

/// How often the engine is asked for a sign of life, and how long it may take.
const ASK_EVERY: Duration = Duration::from_millis(250);
const ANSWER_MAX: Duration = Duration::from_millis(500);
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_millis(500);

pub(super) struct PostgresInvalidations {
    engine: Arc<Engine>,
}

impl PostgresInvalidations {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }
}

#[async_trait]
impl Invalidations for PostgresInvalidations {
    async fn publish(&self, changes: &[LinkChange]) -> PortResult<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let parts = split(changes);
        let steps = [
            // Nothing is written that would have to outlive a crash of the engine.
            Step {
                sql: "SET LOCAL synchronous_commit TO OFF",
                values: &[],
            },
            Step {
                sql: NOTIFY,
                values: &[&parts],
            },
        ];
        let sent = self.engine.transact("publish invalidations", &steps).await;
        sent.map(drop)
    }

    async fn subscribe(&self) -> PortResult<Box<dyn InvalidationFeed>> {
        let subscriber = Subscriber {
            engine: Arc::clone(&self.engine),
            buffer: Arc::default(),
        };
        let listening = subscriber.connect().await?;
        let buffer = Arc::clone(&subscriber.buffer);
        #[expect(clippy::disallowed_methods, reason = "the feed ends it")]
        let task = tokio::spawn(subscriber.run(listening));
        Ok(Box::new(BufferedFeed::new(buffer, task.abort_handle())))
    }
}

/// The payloads of one message: `part/parts changes`.
fn split(changes: &[LinkChange]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for change in changes {
        let one = link_changes::encode(std::slice::from_ref(change));
        match texts.last_mut() {
            Some(text) if text.len() + 1 + one.len() <= PART_BYTES_MAX => {
                text.push(' ');
                text.push_str(&one);
            }
            _ => texts.push(one),
        }
    }
    let parts = texts.len();
    let numbered = (1..).zip(texts);
    numbered
        .map(|(part, text)| format!("{part}/{parts} {text}"))
        .collect()
}

/// Keeps one subscription.
struct Subscriber {
    engine: Arc<Engine>,
    buffer: Arc<FeedBuffer>,
}

/// A connection that listens.
struct Listening {
    client: ClientWrapper,
    lost: Arc<Notify>,
}

impl Subscriber {
    async fn run(self, mut listening: Listening) {
        loop {
            self.watch(&listening).await;
            let mut pause = PAUSE_FIRST;
            listening = loop {
                match self.connect().await {
                    Ok(listening) => break listening,
                    Err(error) => tracing::debug!(%error, "not subscribed"),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            };
            // After the subscription: what was copied before it may have changed unnoticed.
            self.buffer.push_gap();
        }
    }

    async fn connect(&self) -> PortResult<Listening> {
        let lost = Arc::new(Notify::new());
        let receiver = Receiver {
            buffer: Arc::clone(&self.buffer),
            connection: self.buffer.begin_connection(),
            message: Mutex::default(),
        };
        let told = Arc::clone(&lost);
        let receive: Receive = Arc::new(move |notification| match notification {
            Some(notification) => receiver.take(notification.payload()),
            None => told.notify_one(),
        });
        let client = self.engine.listener(SUBSCRIBE, &receive).await?;
        match timeout(ANSWER_MAX * 2, client.batch_execute(LISTEN)).await {
            Ok(Ok(())) => Ok(Listening { client, lost }),
            Ok(Err(error)) => Err(unavailable(error.to_string())),
            Err(_) => Err(unavailable("no answer in time".to_owned())),
        }
    }

    /// Returns when the connection is lost, or leads to what is no primary any more.
    async fn watch(&self, listening: &Listening) {
        let mut elsewhere = std::pin::pin!(self.engine.primary_change());
        loop {
            tokio::select! {
                () = tokio::time::sleep(ASK_EVERY) => {}
                () = listening.lost.notified() => return,
                () = &mut elsewhere => return,
            }
            let asked_at = SystemClock.now();
            let asking = listening.client.batch_execute("SELECT 1");
            match timeout(ANSWER_MAX, asking).await {
                Ok(Ok(())) => self.buffer.push_alive(asked_at),
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }
}

/// Puts messages together that come in parts.
struct Receiver {
    buffer: Arc<FeedBuffer>,
    connection: u64,
    message: Mutex<Message>,
}

#[derive(Default)]
struct Message {
    /// Of the message that is coming.
    sequence: u64,
    parts: u64,
    changes: Vec<LinkChange>,
}

impl Receiver {
    fn take(&self, payload: &str) {
        let mut message = self.message.lock().unwrap_or_else(PoisonError::into_inner);
        match read(payload) {
            Some((part, parts, changes)) if part == message.parts + 1 => {
                message.parts = part;
                message.changes.extend(changes);
                if part == parts {
                    let changes = std::mem::take(&mut message.changes);
                    self.buffer
                        .push(self.connection, message.sequence, changes.into());
                    message.sequence += 1;
                    message.parts = 0;
                }
            }
            // What somebody else says here may have been meant for us.
            _ => {
                message.changes.clear();
                message.parts = 0;
                self.buffer.push_gap();
            }
        }
    }
}

fn read(payload: &str) -> Option<(u64, u64, Box<[LinkChange]>)> {
    let (numbers, changes) = payload.split_once(' ')?;
    let (part, parts) = numbers.split_once('/')?;
    let changes = link_changes::decode(changes)?;
    Some((part.parse().ok()?, parts.parse().ok()?, changes))
}

fn unavailable(detail: String) -> PortError {
    PortError::new(ErrorKind::Unavailable, BACKEND, SUBSCRIBE, detail)
}
