use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::http::{Connection, Request};
use curt_testkit::length::is_full;
use curt_testkit::stop::SetOnDrop;
use serde_json::json;

use crate::length::length;
use crate::site::Site;

/// Not where attacks come from.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));
const EMAIL: &str = "bystander@example.com";
/// Sign-ins are limited by default, and the bystander signs in over and over.
pub(super) const SETTINGS: [&str; 2] = [
    "limits.sign_ins_per_address=",
    "limits.sign_ins_per_account=",
];
/// How long one request may take before it counts as failed.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);
/// Between the end of an attack and the next measurement.
const REST: Duration = Duration::from_secs(5);
const SAMPLE_EVERY: Duration = Duration::from_millis(20);
/// Threads that an attack may add.
const THREADS_ADDED_MAX: u64 = 32;
/// Latencies below this count as this: one that a person can measure only on a machine that does nothing else.
const LATENCY_FLOOR: Duration = Duration::from_millis(2);

/// A user who has nothing to do with an attack.
pub(crate) struct Bystander {
    site: Site,
    sign_in: Request,
    create: Request,
    follow: Request,
}

/// The operations of one round, with the status that each must have.
const OPERATIONS: [(&str, u16); 3] = [("sign-in", 201), ("create", 201), ("redirect", 302)];

/// What a bystander saw, per operation.
#[derive(Default)]
struct Seen {
    latencies: [Vec<Duration>; OPERATIONS.len()],
    failures: Vec<String>,
}

/// The most that the process used.
#[derive(Clone, Copy, Debug)]
struct Usage {
    /// Without pages of files, which the kernel may drop.
    anonymous_bytes: u64,
    threads: u64,
}

impl Bystander {
    /// A new installation with a running server.
    pub(crate) fn start(settings: &[&str]) -> Self {
        Self::of(Site::start(&[&SETTINGS[..], settings].concat()))
    }

    /// A user of a running server, which must not limit sign-ins.
    pub(crate) fn of(site: Site) -> Self {
        let password = site.app().run(&["user", "add", EMAIL]).unwrap();
        let shown = json!({ "email": EMAIL, "password": password.trim() });
        let token = site.new_token("bystander");
        let target = json!({ "target": "https://example.com/bystander" });
        let create = Request::post("/api/v1/links").json(&target).bearer(&token);
        let mut connection = connect(&site);
        let made = connection.send(&create).unwrap();
        assert_eq!(made.status, 201, "{made:?}");
        let key = made.json().unwrap()["key"].as_str().unwrap().to_owned();
        Self {
            site,
            sign_in: Request::post("/api/v1/sessions").json(&shown),
            create,
            follow: Request::get(&format!("/{key}")),
        }
    }

    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    /// Runs the attack beside the bystander, and asserts that they did not notice. `budget_bytes` is what the product
    /// may set aside for what is attacked, beyond half of what it holds when idle.
    pub(crate) fn withstand<T>(
        &self,
        attack_name: &str,
        budget_bytes: u64,
        attack: impl FnOnce(&Site) -> T,
    ) -> T {
        let rounds = length(10, 300);
        let before = self.run_unloaded(rounds);
        let idle = self.usage();
        let over = AtomicBool::new(false);
        let (outcome, loaded, peak) = thread::scope(|scope| {
            let probe = scope.spawn(|| self.run_rounds(rounds, &over));
            let sampler = scope.spawn(|| self.sample_usage(&over));
            let outcome = {
                // Also when the attack panics: the threads would never end, and the test would hang.
                let _end = SetOnDrop::of(&over);
                attack(&self.site)
            };
            (outcome, probe.join().unwrap(), sampler.join().unwrap())
        });
        // What else the machine does changes from minute to minute: the attack is compared with both sides of it.
        thread::sleep(length(Duration::ZERO, REST));
        let after = self.run_unloaded(rounds);
        println!("abuse: {attack_name}: idle {idle:?}, peak {peak:?}");
        for (place, (operation, _)) in OPERATIONS.iter().enumerate() {
            let [before, during, after] =
                [&before, &loaded, &after].map(|seen| percentile_99(&seen.latencies[place]));
            println!(
                "abuse: {attack_name}: {operation} p99 {before:?} before, {during:?} under attack, {after:?} after ({} requests)",
                loaded.latencies[place].len()
            );
        }
        assert!(
            loaded.failures.is_empty(),
            "{attack_name}: {} requests of a bystander failed: {:?}",
            loaded.failures.len(),
            &loaded.failures[..loaded.failures.len().min(10)]
        );
        self.assert_bounded(attack_name, budget_bytes, idle, peak);
        if is_full() {
            assert_latencies(attack_name, [&before, &after], &loaded);
        }
        outcome
    }

    fn run_unloaded(&self, rounds: usize) -> Seen {
        let seen = self.run_rounds(rounds, &AtomicBool::new(true));
        assert!(seen.failures.is_empty(), "{:?}", seen.failures);
        seen
    }

    /// Signs in, creates and follows, so many times and until `over`; fresh and kept connections take turns.
    fn run_rounds(&self, rounds: usize, over: &AtomicBool) -> Seen {
        let mut seen = Seen::default();
        let mut kept: Option<Connection> = None;
        let mut round = 0;
        while round < rounds || !over.load(Ordering::Relaxed) {
            let requests = [&self.sign_in, &self.create, &self.follow];
            for (place, request) in requests.into_iter().enumerate() {
                let (operation, wanted) = OPERATIONS[place];
                let began = Instant::now();
                let mut connection = match kept.take().filter(|kept| !kept.is_closed()) {
                    Some(connection) => connection,
                    None => match Connection::open_from(ADDRESS, self.site.http()) {
                        Ok(connection) => connection,
                        Err(error) => {
                            let failure = format!("{operation}: no connection: {error}");
                            seen.failures.push(failure);
                            continue;
                        }
                    },
                };
                connection.set_timeout(ANSWER_TIME_MAX);
                match connection.send(request) {
                    Ok(answer) if answer.status == wanted => {
                        seen.latencies[place].push(began.elapsed());
                        kept = (answer.keeps_alive() && round % 4 != 3).then_some(connection);
                    }
                    Ok(answer) => {
                        let (status, text) = (answer.status, answer.text());
                        seen.failures.push(format!("{operation}: {status} {text}"));
                    }
                    Err(error) => seen.failures.push(format!("{operation}: {error}")),
                }
            }
            round += 1;
            thread::sleep(PAUSE);
        }
        seen
    }

    fn usage(&self) -> Usage {
        let server = self.site.server();
        Usage {
            // Fails when the process is gone, which is what must not happen.
            anonymous_bytes: server.anonymous_bytes().unwrap(),
            threads: server.threads().unwrap(),
        }
    }

    fn sample_usage(&self, over: &AtomicBool) -> Usage {
        let mut peak = self.usage();
        while !over.load(Ordering::Relaxed) {
            let now = self.usage();
            peak.anonymous_bytes = peak.anonymous_bytes.max(now.anonymous_bytes);
            peak.threads = peak.threads.max(now.threads);
            thread::sleep(SAMPLE_EVERY);
        }
        peak
    }

    fn assert_bounded(&self, attack: &str, budget_bytes: u64, idle: Usage, peak: Usage) {
        // An unoptimised build and a short warm-up leave more to chance.
        let budget_bytes = length(2, 1) * budget_bytes;
        let allowed = idle.anonymous_bytes + idle.anonymous_bytes / 2 + budget_bytes;
        assert!(
            peak.anonymous_bytes <= allowed,
            "{attack}: memory grew from {} to {} bytes; {allowed} are allowed",
            idle.anonymous_bytes,
            peak.anonymous_bytes
        );
        assert!(
            peak.threads <= idle.threads + THREADS_ADDED_MAX,
            "{attack}: threads grew from {} to {}",
            idle.threads,
            peak.threads
        );
        let logs = self.site.server().logs();
        assert!(!logs.contains("panicked"), "{attack}: {logs}");
    }
}

fn connect(site: &Site) -> Connection {
    Connection::open_from(ADDRESS, site.http()).unwrap()
}

fn percentile_99(latencies: &[Duration]) -> Duration {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * 99).div_ceil(100);
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

fn assert_latencies(attack: &str, unloaded: [&Seen; 2], loaded: &Seen) {
    for (place, (operation, _)) in OPERATIONS.iter().enumerate() {
        let p99 = |seen: &Seen| percentile_99(&seen.latencies[place]);
        let quiet = unloaded.map(p99).into_iter().fold(LATENCY_FLOOR, Ord::max);
        let during = p99(loaded);
        assert!(
            during <= 2 * quiet,
            "{attack}: {operation} p99 {during:?} under attack, {quiet:?} without"
        );
    }
}
