//! Records that come twice, out of order, or cannot be read, all at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use curt_clicks::record::{self, IpForm, RecordId};
use curt_core::{Attribution, DomainId, UnixMillis};
use curt_testkit::engines::{kafka, postgres};
use curt_testkit::need;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use serde_json::json;

use super::super::{BROWSER, WAIT_MAX, clicks_of, metric, new_link};
use super::{Plant, wait_for};
use crate::length::length;
use crate::wait::eventually;

const PARTITIONS: u64 = 3;
const PRODUCER: u64 = 7;
/// Records that change places with each other.
const SHUFFLED: usize = 20;
const REPEATED: &str = "curt_stream_repeated_total";
const DEAD_LETTERS: &str = "curt_stream_dead_letters_total";
const SENT_WITHIN: Duration = Duration::from_secs(60);

#[test]
fn clicks_that_come_twice_late_and_among_unreadable_records_are_exact_c1() {
    let cluster = need!(kafka::shared());
    let kcat = need!(kafka::kcat());
    let database = need!(postgres::shared())
        .database("kafka_delivery")
        .unwrap();
    let plant = Plant::new(&cluster, database, &["clicks.flush_every=200ms"]);
    let server = plant.server();
    let keys = [new_link(&server, &json!({}))];
    let counter = plant.counter();
    let seed = rand::random::<u64>();
    let clicks = length(5_000, 500_000);
    println!("{clicks} clicks, seed {seed}");
    let stream = Stream::compose(&keys[0], clicks, seed);
    stream.send(&plant);

    wait_for(&server, &keys, clicks);
    let unreadable = stream.unreadable.len() as u64;
    eventually(WAIT_MAX, || {
        let counted = clicks_of(&mut server.api(), &keys[0]).total();
        assert!(counted <= clicks, "C-1: {counted} of {clicks} clicks");
        let met = (metric(&counter, REPEATED), metric(&counter, DEAD_LETTERS));
        match met == (stream.repeated, unreadable) {
            true => Ok(()),
            false => Err(format!(
                "{met:?} are repeated and unreadable, of {} and {unreadable}",
                stream.repeated
            )),
        }
    });
    assert_eq!(clicks_of(&mut server.api(), &keys[0]).total(), clicks);
    let letters = read_letters(&kcat, &plant);
    assert_eq!(letters, stream.unreadable, "dead letters and their reasons");
    println!(
        "{clicks} clicks counted, {} more records were repeated, {unreadable} are dead letters",
        stream.repeated
    );
}

/// A click of the link as servers forward it, from one of a few visitors.
pub(super) fn encode_click(key: &str, number: u64, at: UnixMillis) -> Vec<u8> {
    let language = ["de", "en-GB,en;q=0.8", "fr"][number as usize % 3];
    let referrer = format!("https://news-{}.example/", number % 10);
    let click = record::ClickRecord {
        at,
        domain: DomainId::DEFAULT,
        key: key.as_bytes(),
        generation: 1,
        outcome: record::Outcome::Redirected,
        method: record::Method::Get,
        prefetch: false,
        address: [203, 0, (number % 100) as u8, 7].into(),
        agent: BROWSER.as_bytes(),
        referrer: referrer.as_bytes(),
        language: language.as_bytes(),
        utm: record::UtmText::default(),
        attribution: Attribution::default(),
    };
    let id = RecordId {
        producer: PRODUCER,
        sequence: number,
    };
    let mut json = Vec::new();
    record::encode_json(&click, id, IpForm::Network, &mut json);
    json
}

/// Everything that is sent, in this order.
struct Stream {
    records: Vec<Sent>,
    /// Records that were there before.
    repeated: u64,
    /// Why each of them cannot be read.
    unreadable: BTreeMap<String, &'static str>,
}

#[derive(Clone)]
struct Sent {
    partition: u64,
    bytes: Vec<u8>,
    /// Of a click.
    position: Option<String>,
}

impl Stream {
    /// A tenth of the records out of order, a tenth twice, and a hundredth that nobody can read.
    fn compose(key: &str, clicks: u64, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let at = UnixMillis(jiff::Timestamp::now().as_millisecond());
        let mut records: Vec<Sent> = (0..clicks).map(|number| sent(key, number, at)).collect();
        // The first of a partition says that all before it is durable, so it stays.
        let mut place = PARTITIONS as usize;
        while place + SHUFFLED <= records.len() {
            if random.random_bool(0.1) {
                records[place..place + SHUFFLED].shuffle(&mut random);
            }
            place += SHUFFLED;
        }
        let mut stream = Self {
            records: Vec::new(),
            repeated: 0,
            unreadable: BTreeMap::new(),
        };
        let mut again = Vec::new();
        for record in records {
            stream.records.push(record.clone());
            if random.random_bool(0.1) {
                // At once, or much later.
                match random.random_bool(0.5) {
                    true => stream.records.push(record),
                    false => again.push(record),
                }
                stream.repeated += 1;
            }
            if random.random_bool(0.01) {
                stream.add_unreadable(random.random_range(0..PARTITIONS), at);
            }
        }
        stream.records.extend(again);
        assert!(!stream.unreadable.is_empty() && stream.repeated > 0);
        stream
    }

    fn add_unreadable(&mut self, partition: u64, at: UnixMillis) {
        let number = self.unreadable.len();
        let whole = String::from_utf8(encode_click("absent", number as u64, at)).unwrap();
        let mark = format!("unreadable-{number}");
        let (text, reason) = match number % 4 {
            0 => (format!("{{\"no click\":\"{mark}\"}}"), "json"),
            // What does not begin as JSON does is taken for a record of another version.
            1 => (format!("{mark} {whole}"), "version"),
            2 => {
                let cut = &whole[..whole.len() / 2];
                (format!("{cut}{mark}"), "json")
            }
            _ => {
                let newer = whole.replace("\"v\":1", "\"v\":99");
                (newer.replace("absent", &mark), "version")
            }
        };
        self.records.push(Sent {
            partition,
            bytes: text.clone().into_bytes(),
            position: None,
        });
        self.unreadable.insert(text, reason);
    }

    fn send(&self, plant: &Plant) {
        let client: BaseProducer = ClientConfig::new()
            .set("bootstrap.servers", plant.hosts())
            .set("queue.buffering.max.messages", "1000000")
            .create()
            .unwrap();
        let topic = plant.topic();
        for sent in &self.records {
            let mut record = BaseRecord::<(), [u8]>::to(&topic)
                .partition(i32::try_from(sent.partition).unwrap())
                .payload(&sent.bytes);
            if let Some(position) = &sent.position {
                record = record.headers(OwnedHeaders::new().insert(Header {
                    key: "curt-position",
                    value: Some(position),
                }));
            }
            client.send(record).map_err(|(error, _)| error).unwrap();
            client.poll(Duration::ZERO);
        }
        client.flush(SENT_WITHIN).unwrap();
    }
}

/// The click as its forwarder sends it: it says which one was before it in the partition.
fn sent(key: &str, number: u64, at: UnixMillis) -> Sent {
    let before = number.checked_sub(PARTITIONS);
    let before = before.map(|before| format!(".{before:x}"));
    Sent {
        partition: number % PARTITIONS,
        bytes: encode_click(key, number, at),
        position: Some(format!(
            "{PRODUCER:x}.{number:x}{}",
            before.unwrap_or_default()
        )),
    }
}

/// The dead letters' topic: what was unreadable, and why. Every letter is there once, and says where the record was.
fn read_letters(kcat: &Path, plant: &Plant) -> BTreeMap<String, &'static str> {
    let topic = format!("{}.dead-letters", plant.topic());
    let mut read = std::process::Command::new(kcat);
    read.args(["-C", "-b", &plant.hosts(), "-t", &topic]);
    read.args(["-o", "beginning", "-e", "-q", "-f", "%h %s\\n"]);
    let output = read.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut letters = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (headers, text) = line.split_once(' ').unwrap();
        let headers: BTreeMap<&str, &str> = headers
            .split(',')
            .filter_map(|header| header.split_once('='))
            .collect();
        for name in ["partition", "offset"] {
            assert!(headers[name].parse::<u64>().is_ok(), "{line}");
        }
        let reason = match headers["reason"] {
            "json" => "json",
            "version" => "version",
            other => panic!("{other} is no reason: {line}"),
        };
        let before = letters.insert(text.to_owned(), reason);
        assert!(before.is_none(), "twice: {line}");
    }
    letters
}
