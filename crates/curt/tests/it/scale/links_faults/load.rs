//! Visitors and writers, and what they see while the database is hurt.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::api::{Answer, Api};

const VISITORS: usize = 3;
const PAUSE: Duration = Duration::from_millis(5);
/// A delete of a link that an earlier try, answered with 503, had deleted.
const FOUND_DELETED: &str = "delete again";

pub(super) fn target(number: usize) -> String {
    format!("https://example.com/{number}")
}

pub(super) fn named_target(name: &str) -> String {
    format!("https://example.com/named/{name}")
}

/// One answer to a request that began at a time.
struct Record {
    what: &'static str,
    began: Instant,
    took: Duration,
    status: u16,
    retry_after: bool,
    text: String,
    /// Target or name of what was to be created.
    name: String,
    /// The key that it got.
    key: Option<String>,
}

pub(super) struct Load {
    stop: Arc<AtomicBool>,
    /// Redirects so far.
    redirected: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Vec<Record>>>,
}

type Client = Box<dyn FnMut(&mut Api) -> Record + Send>;

impl Load {
    /// `keys` are followed and edited, `doomed` are deleted one after the other.
    pub(super) fn start(
        address: SocketAddr,
        token: &str,
        keys: &Arc<Vec<String>>,
        doomed: Vec<String>,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let redirected = Arc::new(AtomicUsize::new(0));
        let visitors = (0..VISITORS).map(|number| visitor(Arc::clone(keys), number * 67));
        let writers = [
            Box::new(create) as Client,
            Box::new(create_once),
            editor(Arc::clone(keys)),
            deleter(doomed),
        ];
        let clients = visitors.chain(writers).map(|mut client| {
            let (stop, redirected) = (Arc::clone(&stop), Arc::clone(&redirected));
            let mut api = Api::new(address, token);
            thread::spawn(move || {
                let mut records = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let record = client(&mut api);
                    redirected.fetch_add(usize::from(record.status == 302), Ordering::Relaxed);
                    records.push(record);
                    thread::sleep(PAUSE);
                }
                records
            })
        });
        let clients = clients.collect();
        Self {
            stop,
            redirected,
            clients,
        }
    }

    pub(super) fn redirected(&self) -> usize {
        self.redirected.load(Ordering::Relaxed)
    }

    /// What was answered to requests that began and ended in this time.
    pub(super) fn stop(self, during: &Range<Instant>) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        let mut seen = Seen::default();
        for client in self.clients {
            for record in client.join().unwrap() {
                let is_during =
                    record.began > during.start && record.began + record.took < during.end;
                seen.note(record, is_during);
            }
        }
        seen
    }
}

fn visitor(keys: Arc<Vec<String>>, first: usize) -> Client {
    let mut turns = first..;
    Box::new(move |api| {
        let turn = turns.next().unwrap_or_default();
        timed("click", || api.follow(&keys[turn % keys.len()]).unwrap())
    })
}

fn create(api: &mut Api) -> Record {
    let target = format!("https://example.com/plain/{:x}", rand::random::<u64>());
    let mut record = timed("create", || api.create(&target).unwrap());
    record.name = target;
    record
}

fn create_once(api: &mut Api) -> Record {
    let name = format!("{:x}", rand::random::<u64>());
    let send = || api.create_once(&named_target(&name), &name).unwrap();
    let mut record = timed("create once", send);
    record.name = name;
    record
}

fn editor(keys: Arc<Vec<String>>) -> Client {
    let mut turns = 0_usize..;
    Box::new(move |api| {
        let turn = turns.next().unwrap_or_default();
        let title = json!({ "title": format!("title {turn}") });
        let key = &keys[turn % keys.len()];
        timed("edit", || api.edit(key, &title).unwrap())
    })
}

/// Goes on to the next link when one is deleted. The outcome of a delete that was under way when the fault came is unknown:
/// the standby may have it, and then the next try finds the link gone.
fn deleter(doomed: Vec<String>) -> Client {
    let (mut next, mut is_tried) = (0, false);
    Box::new(move |api| {
        let mut record = timed("delete", || {
            api.delete(&doomed[next % doomed.len()]).unwrap()
        });
        if is_tried && record.status == 410 {
            record.what = FOUND_DELETED;
        }
        is_tried = record.status == 503;
        next += usize::from(!is_tried);
        record
    })
}

fn timed(what: &'static str, send: impl FnOnce() -> Answer) -> Record {
    let began = Instant::now();
    let answer = send();
    let key = (answer.status == 201).then(|| answer.json()["key"].as_str().map(str::to_owned));
    Record {
        what,
        began,
        took: began.elapsed(),
        status: answer.status,
        retry_after: answer.header("retry-after").is_some(),
        text: answer.text(),
        name: String::new(),
        key: key.flatten(),
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Redirects {
    pub(super) answered: usize,
    pub(super) failed: usize,
}

/// A write that was tried during the fault.
pub(super) struct Write {
    pub(super) what: &'static str,
    pub(super) status: u16,
    pub(super) retry_after: bool,
    pub(super) took: Duration,
}

#[derive(Default)]
pub(super) struct Seen {
    pub(super) redirects: Redirects,
    /// What visitors got instead.
    pub(super) failures: HashMap<String, usize>,
    pub(super) writes: Vec<Write>,
    /// Target and key of every link that was acknowledged at any time.
    pub(super) acknowledged: Vec<(String, String)>,
    /// Creates that may be repeated.
    pub(super) refused_names: Vec<String>,
    /// Deletes that were done although they had been answered with 503.
    pub(super) found_deleted: usize,
    slowest_click: Duration,
}

impl Seen {
    fn note(&mut self, record: Record, is_during: bool) {
        if let Some(key) = record.key {
            let target = match record.what {
                "create once" => named_target(&record.name),
                _ => record.name,
            };
            self.acknowledged.push((target, key));
        } else if record.what == "create once" && record.status == 503 {
            self.refused_names.push(record.name);
        }
        if !is_during {
            return;
        }
        if record.what == FOUND_DELETED {
            self.found_deleted += 1;
            return;
        }
        if record.what != "click" {
            self.writes.push(Write {
                what: record.what,
                status: record.status,
                retry_after: record.retry_after,
                took: record.took,
            });
            return;
        }
        self.slowest_click = self.slowest_click.max(record.took);
        if record.status == 302 {
            self.redirects.answered += 1;
        } else {
            self.redirects.failed += 1;
            let text = format!("{} {}", record.status, record.text);
            *self.failures.entry(text).or_default() += 1;
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Redirects { answered, failed } = self.redirects;
        let slowest = self.writes.iter().map(|write| write.took).max();
        write!(
            f,
            "{answered} redirects, {failed} failed, slowest {:?}; {} writes refused, slowest {:?}",
            self.slowest_click,
            self.writes.len(),
            slowest.unwrap_or_default()
        )
    }
}
