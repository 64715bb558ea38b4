//! Clients of several servers: whoever loses its connection asks the other server, under the same name.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use super::plant::Plant;
use crate::api::Api;
use crate::wait::awake;

/// How long a client goes from server to server before its create counts as failed.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Between two tries after a failure.
const BREATH: Duration = Duration::from_millis(20);

/// Where the servers are at this moment.
pub(crate) struct Fronts(Mutex<Vec<SocketAddr>>);

impl Fronts {
    pub(crate) fn new(addresses: Vec<SocketAddr>) -> Self {
        Self(Mutex::new(addresses))
    }

    pub(crate) fn moved(&self, front: usize, address: SocketAddr) {
        self.0.lock().unwrap()[front] = address;
    }

    fn get(&self, turn: usize) -> SocketAddr {
        let addresses = self.0.lock().unwrap();
        addresses[turn % addresses.len()]
    }
}

/// What every target of a crowd begins with.
const TARGETS: &str = "https://example.com/crowd/";

/// What the clients saw.
#[derive(Default)]
pub(crate) struct Seen {
    /// Target by key.
    pub(crate) links: HashMap<String, String>,
    /// Keys that were answered for two different targets.
    pub(crate) duplicates: Vec<String>,
    /// Creates that no server answered in time, or not with 201, and why.
    pub(crate) failed: Vec<String>,
    /// Answers other than 201, whether or not the create was answered with 201 later.
    pub(crate) refused: Vec<String>,
    /// Connections that broke off before the answer, or could not be made: each took another try.
    pub(crate) lost: Vec<String>,
    /// Longest time without any success, over all clients.
    pub(crate) longest_gap: Duration,
}

pub(crate) struct Crowd<'a> {
    pub(crate) fronts: &'a Fronts,
    pub(crate) token: &'a str,
    pub(crate) clients: usize,
    /// Pause of each client between two creates.
    pub(crate) pause: Duration,
    pub(crate) stop: &'a AtomicBool,
    /// Creates that succeeded so far.
    pub(crate) done: &'a AtomicU64,
}

impl<'a> Crowd<'a> {
    pub(crate) fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, 'a>,
    ) -> Vec<ScopedJoinHandle<'scope, Seen>> {
        let Self {
            fronts,
            token,
            clients,
            pause,
            stop,
            done,
        } = self;
        (0..clients)
            .map(|client| {
                scope.spawn(move || {
                    let mut seen = Seen::default();
                    let mut api = Api::new(fronts.get(client), token);
                    let mut turn = client;
                    let mut last = awake();
                    for number in 0_u64.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let name = format!("{client}-{number}-{:x}", rand::random::<u64>());
                        let target = format!("{TARGETS}{name}");
                        let begun = awake();
                        while let Err(failure) = one(&mut api, &target, &name, &mut seen) {
                            let why = failure.note(&mut seen);
                            if awake() > begun + WAIT_MAX {
                                seen.failed.push(why);
                                break;
                            }
                            thread::sleep(BREATH);
                            turn += 1;
                            api = Api::new(fronts.get(turn), token);
                        }
                        done.fetch_add(1, Ordering::Relaxed);
                        seen.longest_gap = seen.longest_gap.max(awake() - last);
                        last = awake();
                        thread::sleep(pause);
                    }
                    seen
                })
            })
            .collect()
    }
}

/// Why a server did not create a link.
enum Failure {
    Refused(String),
    Lost(String),
}

impl Failure {
    fn note(self, seen: &mut Seen) -> String {
        let (notes, why) = match self {
            Self::Refused(why) => (&mut seen.refused, why),
            Self::Lost(why) => (&mut seen.lost, why),
        };
        notes.push(why.clone());
        why
    }
}

/// One create by one server.
fn one(api: &mut Api, target: &str, name: &str, seen: &mut Seen) -> Result<(), Failure> {
    let answer = api
        .create_once(target, name)
        .map_err(|error| Failure::Lost(error.to_string()))?;
    if answer.status != 201 {
        let why = format!("{} {}", answer.status, answer.text());
        return Err(Failure::Refused(why));
    }
    let body = answer.json();
    assert_eq!(body["target"].as_str(), Some(target), "{body}");
    let key = body["key"].as_str().unwrap().to_owned();
    if let Some(other) = seen.links.insert(key.clone(), target.to_owned())
        && other != target
    {
        seen.duplicates.push(key);
    }
    Ok(())
}

/// All that the clients saw, as one.
pub(crate) fn together(clients: Vec<ScopedJoinHandle<'_, Seen>>) -> Seen {
    let mut all = Seen::default();
    for client in clients {
        let seen = client.join().unwrap();
        for (key, target) in seen.links {
            if all.links.insert(key.clone(), target).is_some() {
                all.duplicates.push(key);
            }
        }
        all.duplicates.extend(seen.duplicates);
        all.failed.extend(seen.failed);
        all.refused.extend(seen.refused);
        all.lost.extend(seen.lost);
        all.longest_gap = all.longest_gap.max(seen.longest_gap);
    }
    all
}

impl Seen {
    /// Nobody was refused, at most so many connections were lost, and what was acknowledged is what is stored: every
    /// link with its target, and none beside them.
    pub(crate) fn judge(&self, plant: &Plant, lost_max: usize) {
        assert!(self.duplicates.is_empty(), "K-1: {:?}", self.duplicates);
        assert!(self.failed.is_empty(), "{:?}", self.failed);
        assert!(
            self.refused.is_empty(),
            "{} of {} creates were refused, such as {:?}",
            self.refused.len(),
            self.links.len(),
            self.refused[0]
        );
        assert!(
            self.lost.len() <= lost_max,
            "{} connections were lost: {:?}",
            self.lost.len(),
            self.lost
        );
        assert!(self.links.len() > 100, "too few creates to say anything");
        let sql = format!("select key || ' ' || target from links where target like '{TARGETS}%'");
        let stored = plant.links.sql(&sql).unwrap();
        let pairs = stored.lines().map(|line| line.split_once(' ').unwrap());
        let stored: HashMap<&str, &str> = pairs.collect();
        let mut acknowledged = self.links.iter();
        let wrong =
            acknowledged.find(|(key, target)| stored.get(key.as_str()) != Some(&target.as_str()));
        assert_eq!(wrong, None, "L-1: acknowledged and not stored so");
        assert_eq!(
            stored.len(),
            self.links.len(),
            "more stored than acknowledged"
        );
    }
}
