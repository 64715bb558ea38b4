//! The links database under faults: redirects go on, writes are refused in time, and everything is back by itself.

mod failovers;
mod load;
mod refusals;
mod stops;

use std::cell::Cell;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use curt_testkit::engines::postgres::Pair;
use curt_testkit::http::Client;
use curt_testkit::need;
use curt_testkit::process::{App, Server};

use self::load::{Load, Seen, Write};
use super::plant::stop;
use crate::alone::Company;
use crate::api::{Api, bulk_results};
use crate::length::{length, time_max};
use crate::wait::eventually;

const LINKS: usize = 200;
const BACK_WITHIN: Duration = Duration::from_secs(60);
/// What a write may take.
const WRITE_MAX: Duration = Duration::from_secs(2);
/// Redirects that may fail, in thousands.
const FAILED_PER_MILLE: usize = 1;
/// Redirects that visitors get during a fault, at least.
const REDIRECTS_MIN: usize = 100;

/// When a commit is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replication {
    /// When the standby has it.
    Synchronous,
    /// When the primary has it.
    Asynchronous,
}

/// A server over a primary and its standby.
struct Installation {
    server: Server,
    pair: Pair,
    token: String,
    keys: Arc<Vec<String>>,
    _app: App,
    _company: Company,
}

impl Installation {
    /// With a synchronous standby.
    fn start() -> Result<Self> {
        Self::start_with(Replication::Synchronous, &[])
    }

    fn start_with(replication: Replication, settings: &[(&str, &str)]) -> Result<Self> {
        let company = Company::join();
        let pair = Pair::start()?;
        pair.primary().sql("create database links")?;
        pair.wait_until_followed()?;
        if replication == Replication::Synchronous {
            pair.make_synchronous()?;
        }
        let app = App::new(env!("CARGO_BIN_EXE_curt"))?
            .ready_within(Duration::from_secs(120))
            .setting("store.links", pair.url("links"))
            // What is promised of redirects is that they are answered.
            .setting("postgres.lookup_timeout", length("10s", "1500ms"))
            .setting("server.drain_delay", "0s")
            .setting("log.level", "off");
        let app = settings
            .iter()
            .fold(app, |app, (key, value)| app.setting(key, value));
        app.run(&["user", "add", "tests@example.com"])?;
        let token = app.run(&["api-key", "add", "tests", "--user", "tests@example.com"])?;
        let server = app.start()?;
        let mut installation = Self {
            server,
            pair,
            token: token.trim().to_owned(),
            keys: Arc::default(),
            _app: app,
            _company: company,
        };
        installation.keys = Arc::new(installation.new_links());
        Ok(installation)
    }

    fn api(&self) -> Api {
        Api::new(self.server.http().unwrap(), &self.token)
    }

    fn new_links(&self) -> Vec<String> {
        let targets: Vec<String> = (0..LINKS).map(load::target).collect();
        bulk_results(&self.api().bulk(&targets).unwrap())
    }

    /// Follows links and writes all the time, and hurts the database meanwhile.
    fn run(&mut self, hurt: impl FnOnce(&mut Pair), heal: impl FnOnce(&mut Pair)) -> Seen {
        let address = self.server.http().unwrap();
        let load = Load::start(address, &self.token, &self.keys, self.new_links());
        thread::sleep(Duration::from_millis(500));
        hurt(&mut self.pair);
        let (hurt_at, before) = (Instant::now(), load.redirected());
        thread::sleep(Duration::from_secs(length(5, 30)));
        // A busy machine takes its time.
        eventually(BACK_WITHIN, || {
            let redirected = load.redirected() - before;
            match redirected > 2 * REDIRECTS_MIN {
                true => Ok(()),
                false => Err(format!("{redirected} redirects during the fault")),
            }
        });
        self.assert_redirects_are_ready();
        let heal_at = Instant::now();
        heal(&mut self.pair);
        eventually(BACK_WITHIN, || {
            match self.api().create("https://example.com/back").unwrap() {
                answer if answer.status == 201 => Ok(()),
                answer => Err(format!("{answer:?}")),
            }
        });
        load.stop(&(hurt_at..heal_at))
    }

    /// A balancer that took the server away would end what goes on.
    fn assert_redirects_are_ready(&self) {
        let mut client = Client::new(self.server.http().unwrap());
        let answer = client.get("/health/ready").unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// Everything that was acknowledged is there, and what was refused can be repeated.
    fn check(&self, fault: &str, seen: &Seen) {
        let redirects = seen.redirects;
        println!("links database, {fault}: {seen}");
        assert!(redirects.answered > REDIRECTS_MIN, "{fault}: {redirects:?}");
        assert!(
            redirects.failed * 1_000 <= (redirects.answered + redirects.failed) * FAILED_PER_MILLE,
            "{fault}: {redirects:?}: {:?}",
            seen.failures
        );
        for Write {
            what,
            status,
            retry_after,
            took,
        } in &seen.writes
        {
            let text = format!("{fault}: {what} {status} after {took:?}");
            assert_eq!(*status, 503, "{text}");
            assert!(*retry_after, "no Retry-After: {text}");
            assert!(*took <= time_max(WRITE_MAX), "{text}");
        }
        assert!(
            seen.found_deleted <= 1,
            "{fault}: only the delete that was under way can be done: {}",
            seen.found_deleted
        );
        let kinds = ["create", "create once", "edit", "delete"];
        for kind in kinds {
            let count = seen
                .writes
                .iter()
                .filter(|write| write.what == kind)
                .count();
            assert!(count > 0, "{fault}: no {kind} was tried");
        }
        let mut api = self.api();
        for (number, key) in self.keys.iter().enumerate() {
            assert_leads_to(&mut api, key, &load::target(number));
        }
        for (target, key) in &seen.acknowledged {
            assert_leads_to(&mut api, key, target);
        }
        for name in &seen.refused_names {
            let answer = api.create_once(&load::named_target(name), name).unwrap();
            assert_eq!(answer.status, 201, "{fault}: {answer:?}");
            let key = answer.json()["key"].as_str().unwrap().to_owned();
            assert_leads_to(&mut api, &key, &load::named_target(name));
        }
    }
}

fn assert_leads_to(api: &mut Api, key: &str, target: &str) {
    let answer = api.follow(key).unwrap();
    assert_eq!(
        answer.header("location"),
        Some(target),
        "L-1: {key} {answer:?}"
    );
}

#[test]
fn a_standby_that_does_not_confirm_costs_writes_alone() {
    let mut installation = need!(Installation::start());
    let seen = installation.run(
        |pair| pair.kill_standby().unwrap(),
        |pair| pair.restart_standby().unwrap(),
    );
    installation.check("standby dead", &seen);
    stop(installation.server);
}

#[test]
fn a_paused_primary_costs_writes_alone() {
    let mut installation = need!(Installation::start());
    let seen = installation.run(
        |pair| pair.primary().pause().unwrap(),
        |pair| pair.primary().resume().unwrap(),
    );
    installation.check("primary paused", &seen);
    stop(installation.server);
}

#[test]
fn a_dead_primary_costs_writes_alone_and_its_standby_is_not_stormed_l1() {
    let mut installation = need!(Installation::start());
    let (before, after) = (Cell::new(0), Cell::new(0));
    let begun = Instant::now();
    let seen = installation.run(
        |pair| {
            before.set(sessions(pair));
            pair.kill_primary().unwrap();
        },
        |pair| {
            after.set(sessions(pair));
            pair.promote().unwrap();
        },
    );
    let (logins, lasted) = (after.get() - before.get(), begun.elapsed());
    installation.check("primary dead", &seen);
    println!("links database, primary dead: {logins} logins at the standby in {lasted:?}");
    // The connections for look-ups, and the attempts of one task.
    let logins_max = 10 + 4 * (lasted.as_secs() + 1);
    assert!(logins <= logins_max, "{logins} logins in {lasted:?}");
    stop(installation.server);
}

/// Logins at the standby so far.
fn sessions(pair: &Pair) -> u64 {
    let count = "select sessions from pg_stat_database where datname = 'links'";
    pair.standby().sql(count).unwrap().parse().unwrap()
}
