//! Invalidations over publish and subscribe. A script numbers each message and sends it in one step, so that numbers
//! arrive in order.
//!
//! A subscriber has a connection of its own, on which it also asks for the number of the last message, a few times a
//! second. Redis answers after it has sent everything that was published before, so that an answer proves that nothing is
//! missing, and no answer in time that the connection is lost.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_adapter_kit::{BufferedFeed, FeedBuffer, link_changes};
use curt_core::ports::{InvalidationFeed, Invalidations, LinkChange};
use curt_core::{Clock as _, ErrorKind, PortError, PortResult, SystemClock};
use redis::aio::MultiplexedConnection;
use redis::{PushInfo, PushKind, Script, Value};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::connect::{self, Place};
use super::{BACKEND, Redis, failure};

const PUBLISH: &str = r"
local sequence = redis.call('INCR', KEYS[1])
redis.call('PUBLISH', KEYS[1], string.format('%.0f', sequence) .. ' ' .. ARGV[1])
return 1
";
/// The counter of messages, and the name of the channel.
const NAME: &str = "invalidations";
const SUBSCRIBE: &str = "subscribe to invalidations";

/// How often the engine is asked for a sign of life, and how long it may take.
const ASK_EVERY: Duration = Duration::from_millis(250);
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// Questions between two looks at whether the Sentinels still name the same primary.
const PLACE_EVERY: u32 = 4;
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_millis(500);

pub(super) struct RedisInvalidations {
    redis: Arc<Redis>,
    name: String,
    publish: Script,
}

impl RedisInvalidations {
    pub(super) fn new(redis: Arc<Redis>) -> Self {
        Self {
            name: redis.name(NAME),
            redis,
            publish: Script::new(PUBLISH),
        }
    }
}

#[async_trait]
impl Invalidations for RedisInvalidations {
    async fn publish(&self, changes: &[LinkChange]) -> PortResult<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut script = self.publish.prepare_invoke();
        script.key(&self.name).arg(link_changes::encode(changes));
        let op = "publish invalidations";
        self.redis.run_script::<u64>(op, &script).await.map(drop)
    }

    async fn subscribe(&self) -> PortResult<Box<dyn InvalidationFeed>> {
        let subscriber = Subscriber {
            redis: Arc::clone(&self.redis),
            name: self.name.clone(),
            buffer: Arc::default(),
        };
        let connection = subscriber.connect().await?;
        let buffer = Arc::clone(&subscriber.buffer);
        #[expect(clippy::disallowed_methods, reason = "the feed ends it")]
        let task = tokio::spawn(subscriber.run(connection));
        Ok(Box::new(BufferedFeed::new(buffer, task.abort_handle())))
    }
}

/// Keeps one subscription.
struct Subscriber {
    redis: Arc<Redis>,
    name: String,
    buffer: Arc<FeedBuffer>,
}

/// A connection that is subscribed.
struct Subscribed {
    connection: MultiplexedConnection,
    place: Place,
    lost: Arc<Notify>,
    /// The highest number that the engine has told, by an answer or a message.
    sequence: u64,
}

impl Subscriber {
    async fn run(self, mut subscribed: Subscribed) {
        loop {
            self.watch(&mut subscribed).await;
            let mut pause = PAUSE_FIRST;
            subscribed = loop {
                match self.connect().await {
                    Ok(subscribed) => break subscribed,
                    Err(error) => tracing::debug!(%error, "not subscribed"),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            };
            // After the subscription: what was copied before it may have changed unnoticed.
            self.buffer.push_gap();
        }
    }

    /// Connects, subscribes, and asks where the numbers are.
    async fn connect(&self) -> PortResult<Subscribed> {
        let lost = Arc::new(Notify::new());
        let (buffer, told) = (Arc::clone(&self.buffer), Arc::clone(&lost));
        let number = buffer.begin_connection();
        let receive = move |push: PushInfo| {
            match push.kind {
                PushKind::Message => match read(&push.data) {
                    Some((sequence, changes)) => buffer.push(number, sequence, changes),
                    // What somebody else says here may have been meant for us.
                    None => buffer.push_gap(),
                },
                PushKind::Disconnection => told.notify_one(),
                _ => {}
            }
            Ok::<(), ()>(())
        };
        let (route, settings) = (&self.redis.route, self.redis.settings);
        let (mut connection, place) = connect::connect_pushing(route, settings, receive).await?;
        let subscribing = connection.subscribe(&self.name);
        match timeout(settings.command_timeout, subscribing).await {
            Ok(done) => done.map_err(failure::of_connecting)?,
            Err(_) => return Err(silent()),
        }
        let mut subscribed = Subscribed {
            connection,
            place,
            lost,
            sequence: 0,
        };
        subscribed.sequence = self.ask_sequence(&mut subscribed).await?;
        self.buffer.last_or(subscribed.sequence);
        Ok(subscribed)
    }

    /// Returns when the connection is lost.
    async fn watch(&self, subscribed: &mut Subscribed) {
        let lost = Arc::clone(&subscribed.lost);
        for question in 1_u32.. {
            tokio::select! {
                () = tokio::time::sleep(ASK_EVERY) => {}
                () = lost.notified() => return,
            }
            let asked_at = SystemClock.now();
            let Ok(sequence) = self.ask_sequence(subscribed).await else {
                return;
            };
            let came_to = self.buffer.last_or(sequence);
            // Fewer than before: the engine has forgotten, and others may have been told what we were not.
            if came_to < sequence || sequence < subscribed.sequence {
                return;
            }
            // A message may have come after the question was answered.
            subscribed.sequence = came_to;
            if question % PLACE_EVERY == 0 && !self.is_still_there(subscribed).await {
                return;
            }
            self.buffer.push_alive(asked_at);
        }
    }

    async fn ask_sequence(&self, subscribed: &mut Subscribed) -> PortResult<u64> {
        let mut command = redis::cmd("GET");
        command.arg(&self.name);
        let asking = command.query_async::<Option<u64>>(&mut subscribed.connection);
        match timeout(ANSWER_MAX, asking).await {
            Ok(answer) => Ok(answer.map_err(failure::of_connecting)?.unwrap_or(0)),
            Err(_) => Err(silent()),
        }
    }

    /// A primary that was cut off from its Sentinels goes on answering, and publishers have another one.
    async fn is_still_there(&self, subscribed: &Subscribed) -> bool {
        let found = connect::find(&self.redis.route, self.redis.settings).await;
        found.is_ok_and(|place| place == subscribed.place)
    }
}

fn silent() -> PortError {
    let detail = "no answer in time";
    PortError::new(ErrorKind::Unavailable, BACKEND, SUBSCRIBE, detail)
}

/// The parts of a message: channel and payload.
fn read(data: &[Value]) -> Option<(u64, Box<[LinkChange]>)> {
    let Some(Value::BulkString(payload)) = data.get(1) else {
        return None;
    };
    let (sequence, changes) = str::from_utf8(payload).ok()?.split_once(' ')?;
    Some((sequence.parse().ok()?, link_changes::decode(changes)?))
}
