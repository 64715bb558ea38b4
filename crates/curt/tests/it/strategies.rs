//! Every way to get keys, over the real binary: distinct keys in number and across crashes, accounts that add up.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::http::Client;
use curt_testkit::stop::SetOnDrop;

use crate::api::{Api, bulk_results};
use crate::length::length;
use crate::metrics::Metrics;
use crate::site::Site;
use crate::wait::{awake, eventually};

const FALLBACKS: &str = "curt_key_fallbacks_total";
const CONFLICTS: &str = "curt_key_conflicts_total";
/// How long clients give a supply that ran dry to be filled again.
const DRY_PAUSE: Duration = Duration::from_secs(1);
const CONNECTIONS: usize = 4;
/// How long the creates of one round may take before the test gives up.
const ROUND_TIME_MAX: Duration = Duration::from_secs(900);
const BULK_LINKS: usize = 250;
/// A block of a key file is gone with the process that claimed it: the one in use, and the next that is fetched early.
const FILE_KEYS_HELD_MAX: u64 = 10_000 + 2_000;
/// A running number is gone with the process that took it: the ring, and the block that was being put into it.
const NUMBERS_HELD_MAX: u64 = 4_096 + 1_000;

/// Small files are written soon, and several of them are used up.
const FILE_KEYS: &str = "keys.file.file_keys=50000";

const BASE36: &str = "0123456789abcdefghijklmnopqrstuvwxyz";
const BASE62: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

struct Case {
    name: &'static str,
    settings: &'static [&'static str],
    symbols: String,
    width: usize,
    /// The name under which links with the strategy's keys are counted.
    origin: &'static str,
    /// Width of a key that was made on the spot because the supply was dry.
    random_width: usize,
    /// Keys that may be lost whenever the process ends.
    lost_per_end: u64,
    /// Links whose key must come from the strategy; the others may have a random one because the supply was dry.
    share_min: f64,
}

fn case(name: &'static str) -> Case {
    let base62 = BASE62.to_owned();
    let (settings, symbols, width): (&[&str], _, _) = match name {
        "pool" => (&["keys.strategy=pool"], base62, 7),
        "status" => (
            &[
                "keys.strategy=status",
                "keys.alphabet=base36",
                "keys.length=8",
            ],
            BASE36.to_owned(),
            8,
        ),
        "used-table" => (
            &["keys.strategy=status", "store.keys_form=used-table"],
            base62,
            7,
        ),
        "file" => (
            &["keys.strategy=file", "keys.alphabet=base64url", FILE_KEYS],
            base62 + "-_",
            7,
        ),
        "claim" => (&["keys.strategy=claim"], base62, 7),
        "snowflake" => (
            &["keys.strategy=snowflake", "keys.alphabet=base64dot"],
            base62 + "._",
            8,
        ),
        "sequence" => (
            &["keys.strategy=sequence", "keys.alphabet=base36"],
            BASE36.to_owned(),
            10,
        ),
        "hash" => (&["keys.strategy=hash", "keys.hash=md5"], base62, 7),
        other => panic!("no strategy {other}"),
    };
    Case {
        name,
        settings,
        symbols,
        width,
        origin: match name {
            "pool" | "status" | "used-table" => "ledger",
            "snowflake" | "sequence" => "id",
            same => same,
        },
        random_width: if name == "status" { 8 } else { 7 },
        lost_per_end: match name {
            "file" => FILE_KEYS_HELD_MAX,
            "sequence" => NUMBERS_HELD_MAX,
            _ => 0,
        },
        share_min: match name {
            // Computed from the request: there is nothing that could run dry.
            "hash" => 1.0,
            _ => 0.9,
        },
    }
}

#[test]
fn pool_keys_are_distinct_across_kills_k1_k2() {
    run(&case("pool"));
}

#[test]
fn status_keys_are_distinct_across_kills_k1_k2() {
    run(&case("status"));
}

#[test]
fn used_table_keys_are_distinct_across_kills_k1_k2() {
    run(&case("used-table"));
}

#[test]
fn file_keys_are_distinct_across_kills_k1_k2_k4() {
    run(&case("file"));
}

#[test]
fn claimed_keys_are_distinct_across_kills_k1_k2() {
    run(&case("claim"));
}

#[test]
fn snowflake_keys_are_distinct_across_kills_k1() {
    run(&case("snowflake"));
}

#[test]
fn sequence_keys_are_distinct_across_kills_k1() {
    run(&case("sequence"));
}

#[test]
fn hash_keys_are_distinct_across_kills_k1() {
    run(&case("hash"));
}

fn run(case: &Case) {
    let links = length(5_000, 1_000_000);
    let kills = length(2, 20);
    let mut site = Site::start(case.settings);
    let mut keys: HashSet<String> = HashSet::new();
    let mut loaded = Duration::ZERO;
    let mut fallbacks = 0;
    for round in 0..=kills {
        let goal = links * (round + 1) / (kills + 1);
        let first = until_supplied(&site, case);
        let began = Instant::now();
        let made = create(
            &mut site,
            case,
            round,
            goal.saturating_sub(keys.len()),
            round < kills,
            &mut fallbacks,
        );
        loaded += began.elapsed();
        for key in first.into_iter().chain(made) {
            assert!(
                keys.insert(key.clone()),
                "K-1: {} gave out {key} twice",
                case.name
            );
        }
        if round < kills {
            site.restart();
        }
    }
    assert!(keys.len() >= links);
    for key in &keys {
        let width = key.len() == case.width || key.len() == case.random_width;
        let symbols = key.chars().all(|symbol| case.symbols.contains(symbol));
        assert!(width && symbols, "{key} is not a key of {}", case.name);
    }
    let mut api = site.api();
    for key in keys.iter().step_by(length(11, 997)) {
        assert_eq!(api.follow(key).unwrap().status, 302, "/{key}");
    }
    let ended = site.terminate();
    assert!(ended.success(), "{ended}");
    site.restart();
    let rest = balanced(&site, case, kills as u64 + 1);
    assert!(rest.used > 0.0, "no key came from {}", case.name);
    let share = 1.0 - fallbacks as f64 / keys.len() as f64;
    println!(
        "strategies: {:<10} {} distinct keys over {kills} kills, {:.0}/s, {} links from the strategy (share {share:.3}), {} keys leaked",
        case.name,
        keys.len(),
        keys.len() as f64 / loaded.as_secs_f64(),
        rest.used,
        rest.leaked
    );
    assert!(
        share >= case.share_min,
        "only {share:.3} of the keys came from {}",
        case.name
    );
}

/// Creates links one by one until the strategy supplies their keys: right after a start they may be random ones.
fn until_supplied(site: &Site, case: &Case) -> Vec<String> {
    let supplied = format!("curt_links_created_total{{origin=\"{}\"}}", case.origin);
    let mut api = site.api();
    let mut keys = Vec::new();
    eventually(Duration::from_secs(60), || {
        let target = format!("https://example.com/first/{}", rand::random::<u64>());
        let answer = api.create(&target).unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        keys.push(answer.json()["key"].as_str().unwrap().to_owned());
        match site.metrics().get(&supplied) {
            Some(links) if links > 0.0 => Ok(()),
            _ => Err(format!("{} supplies no keys", case.name)),
        }
    });
    keys
}

/// Creates `links` links in bulk over a few connections. With `kill` the server is killed while it still works on
/// requests beyond those; the keys of every acknowledged request are returned. Keys that were made on the spot because
/// the supply was dry are added to `fallbacks`.
fn create(
    site: &mut Site,
    case: &Case,
    round: usize,
    links: usize,
    kill: bool,
    fallbacks: &mut u64,
) -> Vec<String> {
    let (acknowledged, dry) = (AtomicUsize::new(0), AtomicU64::new(0));
    let (http, token) = (site.http(), site.token().to_owned());
    let admin = site.server().admin().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|client| {
                let (acknowledged, dry, token) = (&acknowledged, &dry, token.as_str());
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut api = Api::new(http, token);
                    let mut keys = Vec::new();
                    for number in 0.. {
                        let is_done = !kill && acknowledged.load(Ordering::Relaxed) >= links;
                        if is_done || is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        let targets: Vec<String> = (0..BULK_LINKS)
                            .map(|at| format!("https://example.com/{round}/{client}/{number}/{at}"))
                            .collect();
                        match api.bulk(&targets) {
                            Ok(answer) => keys.extend(bulk_results(&answer)),
                            Err(_) if kill => break,
                            Err(error) => panic!("{error}"),
                        }
                        acknowledged.fetch_add(BULK_LINKS, Ordering::Relaxed);
                        // At a rate that the strategy can keep up with.
                        let now = counter(admin, FALLBACKS).unwrap_or_default();
                        if now > dry.fetch_max(now, Ordering::Relaxed) {
                            thread::sleep(DRY_PAUSE);
                        }
                    }
                    keys
                })
            })
            .collect();
        if kill {
            // Clients of a server that is not killed would go on for ever.
            let _end = SetOnDrop::of(&is_over);
            let end = awake() + ROUND_TIME_MAX;
            while acknowledged.load(Ordering::Relaxed) < links {
                let is_dead = clients.iter().all(|client| client.is_finished());
                assert!(!is_dead, "the server died: {}", site.server().logs());
                assert!(awake() < end, "creates do not come on");
                thread::sleep(Duration::from_millis(1));
            }
            *fallbacks += counter(admin, FALLBACKS).unwrap();
            assert_no_conflicts(site, case);
            site.kill();
        }
        let made = clients.into_iter();
        let made = made.flat_map(|client| client.join().unwrap()).collect();
        if !kill {
            *fallbacks += counter(admin, FALLBACKS).unwrap();
            assert_no_conflicts(site, case);
        }
        made
    })
}

/// What a server counts, if it lives.
fn counter(admin: SocketAddr, name: &str) -> Option<u64> {
    let answer = Client::new(admin).get("/metrics").ok()?;
    let count = Metrics::parse(&answer.text()).get(name)?;
    Some(count as u64)
}

/// No key of the strategy was on a link already. Random keys and hashes of 7 symbols may meet once in a million.
fn assert_no_conflicts(site: &Site, case: &Case) {
    let conflicts = counter(site.server().admin().unwrap(), CONFLICTS);
    let most = length(0, 3);
    assert!(
        conflicts.is_some_and(|conflicts| conflicts <= most),
        "{}: {conflicts:?} keys were on links already",
        case.name
    );
}

/// What the accounts show when the line has come to rest.
struct Rest {
    used: f64,
    leaked: f64,
}

/// K-2 as the operator sees it after a clean start.
fn balanced(site: &Site, case: &Case, ends: u64) -> Rest {
    eventually(Duration::from_secs(20), || {
        let metrics = site.metrics();
        let stage = |name: &str| metrics.get(&format!("curt_keys{{stage=\"{name}\"}}"));
        let minted = stage("minted").ok_or("the accounts are not shown yet")?;
        let found: f64 = [
            "free",
            "in_transit",
            "pooled",
            "buffered",
            "used",
            "quarantined",
        ]
        .iter()
        .filter_map(|name| stage(name))
        .sum();
        let leaked = stage("leaked").unwrap_or_default();
        let known = minted + stage("recycled").unwrap_or_default();
        if known != found + leaked {
            return Err(format!(
                "K-2: {known} minted, but {found} found and {leaked} leaked"
            ));
        }
        if leaked > (case.lost_per_end * ends) as f64 {
            return Err(format!("K-2: {leaked} of {known} keys leaked"));
        }
        let used = stage("used").unwrap_or_default();
        Ok(Rest { used, leaked })
    })
}

#[test]
fn keys_of_every_alphabet_redirect() {
    for (alphabet, symbols) in [
        ("base36", BASE36.to_owned()),
        ("base62", BASE62.to_owned()),
        ("base64url", format!("{BASE62}-_")),
        ("base64dot", format!("{BASE62}._")),
    ] {
        let site = Site::start(&["keys.length=8", &format!("keys.alphabet={alphabet}")]);
        let mut api = site.api();
        let targets: Vec<String> = (0..500)
            .map(|number| format!("https://example.com/{alphabet}/{number}"))
            .collect();
        let keys = bulk_results(&api.bulk(&targets).unwrap());
        let mut met = HashSet::new();
        for (key, target) in keys.iter().zip(&targets) {
            assert!(
                key.len() == 8 && key.chars().all(|c| symbols.contains(c)),
                "{key}"
            );
            met.extend(key.chars());
            let answer = api.follow(key).unwrap();
            assert_eq!(
                (answer.status, answer.header("location")),
                (302, Some(target.as_str())),
                "/{key} of {alphabet}"
            );
        }
        // 4,000 draws miss one of 64 symbols once in 10^25 runs.
        assert_eq!(
            met.len(),
            symbols.len(),
            "{alphabet} does not use all its symbols"
        );
    }
}

/// Keygen is dead: whoever watches the log hears of it while keys are left.
#[test]
fn key_files_that_run_out_are_reported_in_time() {
    let files = [
        "keys.strategy=file",
        "keys.file.file_keys=400",
        "keys.file.block_keys=20",
        "keys.file.refill_under=5",
        "keys.buffer.low=5",
        "keys.buffer.capacity=40",
        // On a busy machine a refill may take longer than a create waits by default.
        "keys.dry_wait=5s",
    ];
    let mut site = Site::prepared(&files);
    let mut fill: Vec<String> = ["keys", "fill", "--until", "400"].map(String::from).into();
    fill.extend(site.set_arguments());
    let fill: Vec<&str> = fill.iter().map(String::as_str).collect();
    assert!(site.output(&fill).status.success());
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart_as(&["redirect", "api"]);
    let create = |links: usize| {
        for _ in 0..links {
            assert_eq!(
                site.api().create("https://example.com/").unwrap().status,
                201
            );
        }
    };
    create(300);
    let logged = || site.server().logs().contains("key_files_low");
    assert!(!logged(), "a fifth calls for keygen, and no more");
    create(60);
    eventually(Duration::from_secs(5), || {
        logged().then_some(()).ok_or("no word of it")
    });
    assert_eq!(
        site.metrics().get("curt_key_fallbacks_total"),
        Some(0.0),
        "keys are left"
    );
    assert!(site.terminate().success());
}
