//! The topic and its dead letters.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use curt_adapter_kit::off_runtime;
use curt_core::{ErrorKind, PortError, PortResult};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::Client;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::Producer as _;

use super::context::Quiet;
use super::{ANSWER_MAX, BACKEND, Kafka, Questions, failure};

const OP: &str = "find the topic";
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOKS_MAX: u32 = 60;

/// Makes what is absent, where this account may, and returns how many partitions the topic has.
pub(super) async fn make(kafka: &Kafka) -> PortResult<u32> {
    // First, because it tells why no broker answers.
    let questions = kafka.questions()?;
    let asked = Arc::clone(&questions);
    off_runtime(BACKEND, OP, move || ping(OP, &asked)).await?;
    let partitions = i32::try_from(kafka.settings.partitions).unwrap_or(i32::MAX);
    let replicas = kafka
        .settings
        .replicas
        .and_then(|replicas| replicas.try_into().ok());
    // -1: as the brokers have it.
    let replicas = replicas.unwrap_or(-1);
    let topic =
        |name, partitions| NewTopic::new(name, partitions, TopicReplication::Fixed(replicas));
    let topics = [
        topic(kafka.route.topic.as_str(), partitions),
        topic(&kafka.route.dead_letters, 1),
        // Nobody reads what is older than a second.
        topic(&kafka.route.flushes, 1).set("retention.ms", "3600000"),
    ];
    let options = AdminOptions::new().request_timeout(Some(ANSWER_MAX));
    let admin: AdminClient<Quiet> = kafka
        .config()
        .create_with_context(Quiet::default())
        .map_err(|error| failure::of(OP, error))?;
    let made = admin.create_topics(&topics, &options).await;
    for made in made.map_err(|error| failure::of(OP, error))? {
        match made {
            Ok(topic) => tracing::info!(topic, "topic made"),
            Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            // Another account may have made it.
            Err((topic, error)) => tracing::debug!(topic, %error, "topic not made"),
        }
    }
    let topic = kafka.route.topic.clone();
    off_runtime(BACKEND, OP, move || {
        for _ in 0..LOOKS_MAX {
            match count(questions.client(), &topic) {
                // Brokers tell of a new topic a moment after it is made.
                Err(error) if error.kind.is_transient() => {
                    thread::sleep(LOOK_EVERY);
                }
                counted => return counted,
            }
        }
        count(questions.client(), &topic)
    })
    .await
}

/// Returns when a broker has answered.
pub(super) fn ping(op: &'static str, questions: &Questions) -> PortResult<()> {
    let client = questions.client();
    let answer = client.fetch_metadata(None, ANSWER_MAX);
    answer
        .map(|_| client.context().note_answer())
        .map_err(|error| client.context().explain(failure::of(op, error)))
}

fn count(client: &Client<Quiet>, topic: &str) -> PortResult<u32> {
    let answer = client.fetch_metadata(Some(topic), ANSWER_MAX);
    let answer = answer.map_err(|error| client.context().explain(failure::of(OP, error)))?;
    let found = answer.topics().iter().find(|found| found.name() == topic);
    match found.map_or(0, |found| found.partitions().len()) {
        0 => {
            let detail = format!(
                "topic {topic:?} is absent and cannot be made with this account: make it, with a partition for each core \
                 that counts"
            );
            Err(PortError::new(ErrorKind::Unavailable, BACKEND, OP, detail))
        }
        count => Ok(u32::try_from(count).unwrap_or(u32::MAX)),
    }
}
