//! Questions and answers between processes that report and processes that count, in a topic of their own: nothing else
//! needs to run for reports to be up to date. Lines of text, of no use after a second:
//! `ask 1f` and `done 1f whole 0,3,5` (or `part`).

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{FlushAsk, FlushChannel};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};
use tokio::sync::{Notify, OnceCell};
use tokio::time::{Instant, timeout_at};

use super::context::Quiet;
use super::{Kafka, failure};

const OP: &str = "ask for a flush";
const POLL_EVERY: Duration = Duration::from_millis(100);
/// Questions that are kept for a process that does not look at them.
const ASKED_MAX: usize = 1_000;

/// The channel of a topic's processes.
pub struct KafkaFlushChannel {
    kafka: Arc<Kafka>,
    /// Opened when the topic is there.
    ends: OnceCell<Ends>,
}

struct Ends {
    client: ThreadedProducer<Quiet>,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    state: Mutex<State>,
    changed: Notify,
    is_stopped: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Whether everything is heard that is said from now on.
    is_listening: bool,
    asked: Vec<FlushAsk>,
    /// By question of this process, the partitions that were answered for.
    answers: HashMap<FlushAsk, Answers>,
}

#[derive(Clone, Debug)]
struct Answers {
    partitions: BTreeSet<u32>,
    is_whole: bool,
}

impl KafkaFlushChannel {
    pub(super) fn new(kafka: Arc<Kafka>) -> Self {
        Self {
            kafka,
            ends: OnceCell::new(),
        }
    }

    async fn ends(&self) -> PortResult<&Ends> {
        let open = async {
            self.kafka.partitions().await?;
            Ends::open(&self.kafka)
        };
        self.ends.get_or_try_init(|| open).await
    }
}

impl Ends {
    fn open(kafka: &Kafka) -> PortResult<Self> {
        let mut config = kafka.config();
        config
            .set("linger.ms", "0")
            .set("message.timeout.ms", "2000");
        let client = config.create_with_context(Quiet::default());
        let client = client.map_err(|error| failure::of(OP, error))?;
        let mut config = kafka.config();
        config
            .set("group.id", &kafka.route.group)
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("auto.offset.reset", "latest");
        let listener: BaseConsumer<Quiet> = config
            .create_with_context(Quiet::default())
            .map_err(|error| failure::of(OP, error))?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&kafka.route.flushes, 0, Offset::End)
            .and_then(|()| listener.assign(&list))
            .map_err(|error| failure::of(OP, error))?;
        let heard = Arc::<Heard>::default();
        let told = Arc::clone(&heard);
        thread::Builder::new()
            .name("curt-flushes".into())
            .spawn(move || told.listen(&listener))
            .map_err(|error| failure::of_thread(OP, error))?;
        Ok(Self { client, heard })
    }

    fn say(&self, topic: &str, line: &str) -> PortResult<()> {
        let record = BaseRecord::<(), str>::to(topic).partition(0).payload(line);
        self.client
            .send(record)
            .map_err(|(error, _)| failure::of(OP, error))
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.heard.is_stopped.store(true, Ordering::Relaxed);
    }
}

impl Heard {
    fn listen(&self, listener: &BaseConsumer<Quiet>) {
        while !self.is_stopped.load(Ordering::Relaxed) {
            match listener.poll(POLL_EVERY) {
                Some(Ok(message)) => {
                    let line = message.payload().and_then(|line| str::from_utf8(line).ok());
                    self.lock().note(line.unwrap_or_default());
                }
                Some(Err(KafkaError::PartitionEOF(_))) => self.lock().is_listening = true,
                // The library goes on by itself.
                Some(Err(_)) | None => continue,
            }
            self.changed.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what `look` finds, or `None` at the deadline.
    async fn wait_for<T>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        loop {
            // Before the look, so that a change between both wakes it.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(found) = look(&mut self.lock()) {
                return Some(found);
            }
            match deadline {
                Some(deadline) => timeout_at(deadline, changed).await.ok()?,
                None => changed.await,
            }
        }
    }
}

impl State {
    fn note(&mut self, line: &str) {
        let mut words = line.split(' ');
        match (words.next(), words.next().and_then(read_ask)) {
            (Some("ask"), Some(ask)) if self.asked.len() < ASKED_MAX => self.asked.push(ask),
            (Some("done"), Some(ask)) => {
                // Not of this process, or nobody waits any more.
                let Some(answers) = self.answers.get_mut(&ask) else {
                    return;
                };
                answers.is_whole &= words.next() == Some("whole");
                let partitions = words.next().unwrap_or_default().split(',');
                answers
                    .partitions
                    .extend(partitions.flat_map(str::parse::<u32>));
            }
            _ => {}
        }
    }
}

fn read_ask(text: &str) -> Option<FlushAsk> {
    u64::from_str_radix(text, 16).ok().map(FlushAsk)
}

#[async_trait]
impl FlushChannel for KafkaFlushChannel {
    async fn ask(&self, wait: Duration) -> PortResult<bool> {
        let deadline = Instant::now() + wait;
        let Ok(ends) = timeout_at(deadline, self.ends()).await else {
            return Ok(false);
        };
        let (ends, partitions) = (ends?, self.kafka.partitions().await?);
        let is_listening = |state: &mut State| state.is_listening.then_some(());
        if ends
            .heard
            .wait_for(Some(deadline), is_listening)
            .await
            .is_none()
        {
            return Ok(false);
        }
        let ask = FlushAsk(rand::random());
        let answers = Answers {
            partitions: BTreeSet::new(),
            is_whole: true,
        };
        ends.heard.lock().answers.insert(ask, answers);
        let asked = ends.say(&self.kafka.route.flushes, &format!("ask {:x}", ask.0));
        let is_answered = |state: &mut State| {
            let answers = state.answers.get(&ask)?;
            let is_complete = (0..partitions).all(|number| answers.partitions.contains(&number));
            is_complete.then_some(answers.is_whole)
        };
        let answered = match &asked {
            Ok(()) => ends.heard.wait_for(Some(deadline), is_answered).await,
            Err(_) => None,
        };
        ends.heard.lock().answers.remove(&ask);
        asked.map(|()| answered.unwrap_or(false))
    }

    async fn asked(&self) -> PortResult<Vec<FlushAsk>> {
        let take = |state: &mut State| {
            let asked = std::mem::take(&mut state.asked);
            (!asked.is_empty()).then_some(asked)
        };
        let ends = self.ends().await?;
        Ok(ends.heard.wait_for(None, take).await.unwrap_or_default())
    }

    async fn answer(
        &self,
        asked: &[FlushAsk],
        partitions: &[u32],
        is_whole: bool,
    ) -> PortResult<()> {
        let ends = self.ends().await?;
        let whole = if is_whole { "whole" } else { "part" };
        let numbers: Vec<String> = partitions.iter().map(u32::to_string).collect();
        let numbers = numbers.join(",");
        for ask in asked {
            let line = format!("done {:x} {whole} {numbers}", ask.0);
            ends.say(&self.kafka.route.flushes, &line)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_strange_ones_are_passed_over() {
        let mut state = State::default();
        let ask = FlushAsk(0x1f);
        let answers = Answers {
            partitions: BTreeSet::new(),
            is_whole: true,
        };
        state.answers.insert(ask, answers);
        for line in [
            "",
            "ask",
            "ask x",
            "done 1e whole 1",
            "what 1f",
            "done 1f whole 0,x,3",
        ] {
            state.note(line);
        }
        assert_eq!(state.asked, []);
        assert_eq!(state.answers[&ask].partitions, BTreeSet::from([0, 3]));
        assert!(state.answers[&ask].is_whole);
        state.note("done 1f part 1");
        assert!(!state.answers[&ask].is_whole);
        state.note("ask 2a");
        assert_eq!(state.asked, [FlushAsk(0x2a)]);
    }
}
