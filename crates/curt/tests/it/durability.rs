//! L-1: what was acknowledged survives kill -9.
//!
//! Clients create links one by one and in bulk, edit and delete them, while the server is killed at a random moment.
//! Each client writes down what it asks for before it asks and what was acknowledged after, so that afterwards every
//! link can be judged: an acknowledged step holds; a step that nobody acknowledged holds or does not, but nothing else
//! is possible.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use curt_testkit::stop::SetOnDrop;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::api::{Api, bulk_results};
use crate::length::length;
use crate::site::Site;

const SINGLE_CLIENTS: usize = 6;
const BULK_CLIENTS: usize = 2;
const BULK_LINKS: usize = 50;

/// What one link must be after a crash.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    target: String,
    /// An edit that was sent and not acknowledged.
    maybe_target: Option<String>,
    deleted: bool,
    /// A delete that was sent and not acknowledged.
    maybe_deleted: bool,
}

impl Expected {
    fn new(target: String) -> Self {
        Self {
            target,
            maybe_target: None,
            deleted: false,
            maybe_deleted: false,
        }
    }

    /// Where it leads, as far as was acknowledged.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    fn allows(&self, status: u16, location: Option<&str>) -> bool {
        match status {
            302 => {
                !self.deleted
                    && (location == Some(self.target.as_str())
                        || location.is_some() && location == self.maybe_target.as_deref())
            }
            410 => self.deleted || self.maybe_deleted,
            _ => false,
        }
    }
}

/// What one client did in one round.
#[derive(Default)]
pub(crate) struct Diary {
    /// By key.
    pub(crate) acknowledged: HashMap<String, Expected>,
    /// Targets that were sent and not acknowledged.
    open: Vec<String>,
    edits: u64,
    deletes: u64,
}

#[test]
fn acknowledged_creates_edits_and_deletes_survive_kill_9_l1() {
    judge_kills(Site::start(&[]), length(5, 50), length(50..250, 50..600));
}

/// Kills a server again and again under load, each time after so many milliseconds, and judges every link.
pub(crate) fn judge_kills(mut site: Site, kills: usize, lives: Range<u64>) {
    let seed = rand::random::<u64>();
    println!("durability: {kills} kills, seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut known: HashMap<String, Expected> = HashMap::new();
    let mut asked: HashSet<String> = HashSet::new();
    let (mut edits, mut deletes) = (0, 0);
    for round in 0..kills {
        let until = Duration::from_millis(random.random_range(lives.clone()));
        let diaries = load_until_killed(&mut site, round, until);
        site.restart();
        let mut api = site.api();
        for diary in diaries {
            edits += diary.edits;
            deletes += diary.deletes;
            judge(&mut api, &diary.acknowledged);
            asked.extend(diary.acknowledged.values().map(|link| link.target.clone()));
            asked.extend(diary.open);
            asked.extend(
                diary
                    .acknowledged
                    .values()
                    .filter_map(|link| link.maybe_target.clone()),
            );
            known.extend(diary.acknowledged);
        }
    }
    assert!(!known.is_empty(), "no round acknowledged anything");
    judge(&mut site.api(), &known);
    let stored = judge_all_stored(&mut site.api(), &asked);
    println!(
        "durability: {} links acknowledged over {kills} kills, {edits} edits, {deletes} deletes, 0 lost; {stored} live, none unasked for",
        known.len()
    );
}

/// Loads the server from several connections, kills it after `until`, and returns what each client saw.
pub(crate) fn load_until_killed(site: &mut Site, round: usize, until: Duration) -> Vec<Diary> {
    let stop = AtomicBool::new(false);
    let (http, token) = (site.http(), site.token().to_owned());
    thread::scope(|scope| {
        let mut clients = Vec::new();
        for client in 0..SINGLE_CLIENTS + BULK_CLIENTS {
            let (stop, token) = (&stop, token.as_str());
            clients.push(scope.spawn(move || {
                let mut diary = Diary::default();
                let name = format!("{round}/{client}");
                // The error is the kill; what counts is in the diary.
                let ended = match client < SINGLE_CLIENTS {
                    true => work_singly(&mut Api::new(http, token), &name, &mut diary, stop),
                    false => work_in_bulk(&mut Api::new(http, token), &name, &mut diary, stop),
                };
                drop(ended);
                diary
            }));
        }
        let end = SetOnDrop::of(&stop);
        thread::sleep(until);
        site.kill();
        drop(end);
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    })
}

/// Creates links one by one; edits every second of them and deletes every third.
fn work_singly(api: &mut Api, name: &str, diary: &mut Diary, stop: &AtomicBool) -> io::Result<()> {
    for number in 0_u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let target = format!("https://example.com/{name}/{number}");
        diary.open = vec![target.clone()];
        let answer = api.create(&target)?;
        assert_eq!(answer.status, 201, "{answer:?}");
        let key = answer.json()["key"].as_str().unwrap().to_owned();
        diary.open.clear();
        diary
            .acknowledged
            .insert(key.clone(), Expected::new(target.clone()));
        let link = diary.acknowledged.get_mut(&key).unwrap();
        if number % 2 == 1 {
            let edited = format!("{target}/edited");
            link.maybe_target = Some(edited.clone());
            let answer = api.edit(&key, &serde_json::json!({ "target": edited }))?;
            assert_eq!(answer.status, 200, "{answer:?}");
            *link = Expected::new(edited);
            diary.edits += 1;
        }
        if number % 3 == 2 {
            link.maybe_deleted = true;
            let answer = api.delete(&key)?;
            assert_eq!(answer.status, 204, "{answer:?}");
            link.deleted = true;
            diary.deletes += 1;
        }
    }
    Ok(())
}

fn work_in_bulk(api: &mut Api, name: &str, diary: &mut Diary, stop: &AtomicBool) -> io::Result<()> {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let targets: Vec<String> = (0..BULK_LINKS)
            .map(|place| format!("https://example.com/{name}/{number}/{place}"))
            .collect();
        diary.open.clone_from(&targets);
        let answer = api.bulk(&targets)?;
        let keys = bulk_results(&answer);
        diary.open.clear();
        for (key, target) in keys.into_iter().zip(targets) {
            diary.acknowledged.insert(key, Expected::new(target));
        }
    }
    Ok(())
}

/// Whether a visitor finds the link as it must be.
pub(crate) fn is_as_expected(api: &mut Api, key: &str, expected: &Expected) -> bool {
    let answer = api.follow(key).unwrap();
    expected.allows(answer.status, answer.header("location"))
}

fn judge(api: &mut Api, links: &HashMap<String, Expected>) {
    for (key, expected) in links {
        let answer = api.follow(key).unwrap();
        assert!(
            expected.allows(answer.status, answer.header("location")),
            "L-1: /{key} answers {} to {:?}, but {expected:?}",
            answer.status,
            answer.header("location")
        );
    }
}

/// Walks through everything that is stored: each link leads where some client asked for, and no request was applied
/// twice. Returns how many links there are.
fn judge_all_stored(api: &mut Api, asked: &HashSet<String>) -> usize {
    let mut found = HashSet::new();
    let mut path = "/api/v1/links?limit=200".to_owned();
    loop {
        let answer = api.get(&path).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        let page = answer.json();
        for link in page["links"].as_array().unwrap() {
            let target = link["target"].as_str().unwrap().to_owned();
            assert!(asked.contains(&target), "nobody asked for {target}");
            assert!(found.insert(target.clone()), "{target} is stored twice");
        }
        match page["next"].as_str() {
            Some(next) => path = format!("/api/v1/links?limit=200&cursor={next}"),
            None => return found.len(),
        }
    }
}
