//! An engine that refuses logins, and one that is slow: 503 for what needs it, and nothing for what does not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use curt_testkit::engines::postgres::{self, Database};
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::engines::unique;
use curt_testkit::need;
use curt_testkit::process::{App, Server};

use crate::alone::Company;
use crate::api::{Answer, Api};
use crate::scale::plant::stop;
use crate::wait::eventually;

const SEEN_WITHIN: Duration = Duration::from_secs(60);

/// The machine may be busy: what is refused here is refused by the engine.
const PATIENT: &[(&str, &str)] = &[
    ("log.level", "error"),
    ("postgres.lookup_timeout", "30s"),
    ("postgres.write_timeout", "30s"),
];

fn start(url: &str, settings: &[(&str, &str)]) -> (App, Server, Api) {
    let app = App::new(env!("CARGO_BIN_EXE_curt"))
        .unwrap()
        .ready_within(Duration::from_secs(120))
        .setting("store.links", url)
        .setting("server.drain_delay", "0s");
    let app = settings
        .iter()
        .fold(app, |app, (key, value)| app.setting(key, value));
    app.run(&["user", "add", "tests@example.com"]).unwrap();
    let token = app.run(&["api-key", "add", "tests", "--user", "tests@example.com"]);
    let server = app.start().unwrap();
    let api = Api::new(server.http().unwrap(), token.unwrap().trim());
    (app, server, api)
}

fn create(api: &mut Api, target: &str) -> String {
    let answer = api.create(target).unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["key"].as_str().unwrap().to_owned()
}

fn assert_refused(answer: &Answer) -> Result<(), String> {
    assert_ne!(answer.status, 500, "{answer:?}");
    assert_ne!(answer.status, 404, "{answer:?}");
    assert_ne!(answer.status, 401, "{answer:?}");
    match answer.status {
        503 => {
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
            Ok(())
        }
        other => Err(format!("still {other}")),
    }
}

/// A login that worked when the server started, and the statements that end and bring it back.
struct Refusal {
    name: &'static str,
    end: String,
    mend: String,
    /// What the log must name.
    cause: &'static str,
}

fn refusals(role: &str, database: &str) -> [Refusal; 3] {
    [
        Refusal {
            name: "no login",
            end: format!("alter role {role} nologin"),
            mend: format!("alter role {role} login"),
            cause: "not permitted to log in",
        },
        Refusal {
            name: "too many connections",
            end: format!("alter role {role} connection limit 0"),
            mend: format!("alter role {role} connection limit -1"),
            cause: "too many connections",
        },
        Refusal {
            name: "database renamed",
            end: format!("alter database {database} rename to {database}_away"),
            mend: format!("alter database {database}_away rename to {database}"),
            cause: "does not exist",
        },
    ]
}

#[test]
fn an_engine_that_refuses_us_is_503_with_its_cause_until_it_does_not() {
    let _company = Company::join();
    let server = need!(postgres::shared());
    let database = server.database("refusals").unwrap();
    let (name, role) = (database.name().to_owned(), unique("app"));
    server.sql(&format!("create role {role} login")).unwrap();
    server
        .sql(&format!("alter database {name} owner to {role}"))
        .unwrap();
    // A second host that nobody listens on: its "connection refused" must not hide the cause.
    let url = format!(
        "postgres://{role}@127.0.0.1:{},127.0.0.1:1/{name}",
        server.port()
    );
    let (_app, curt, mut api) = start(&url, PATIENT);
    let key = create(&mut api, "https://example.com/kept");
    for Refusal {
        name: refusal,
        end,
        mend,
        cause,
    } in refusals(&role, &name)
    {
        // The sessions that are there must go, and come again before the database can be renamed.
        eventually(SEEN_WITHIN, || {
            let kick = format!(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
            );
            server.sql(&kick).map_err(|error| error.to_string())?;
            server.sql(&end).map_err(|error| error.to_string())
        });
        let kick = format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = '{role}'"
        );
        server.sql(&kick).unwrap();
        eventually(SEEN_WITHIN, || assert_refused(&api.follow(&key).unwrap()));
        eventually(SEEN_WITHIN, || {
            assert_refused(&api.create("https://example.com/").unwrap())
        });
        // The first refusals are those of the sessions that were ended.
        eventually(SEEN_WITHIN, || {
            assert_refused(&api.follow(&key).unwrap())?;
            let log = curt.logs();
            match log.contains(cause) {
                true => Ok(()),
                false => Err(format!("{refusal}: {log}")),
            }
        });
        server.sql(&mend).unwrap();
        eventually(SEEN_WITHIN, || match api.follow(&key).unwrap() {
            answer if answer.status == 302 => Ok(()),
            answer => Err(format!("{refusal}: {answer:?}")),
        });
        eventually(SEEN_WITHIN, || {
            match api.create("https://example.com/").unwrap() {
                answer if answer.status == 201 => Ok(()),
                answer => Err(format!("{refusal}: {answer:?}")),
            }
        });
    }
    stop(curt);
}

/// The database behind a line that can be held.
fn behind_line(database: &Database) -> anyhow::Result<(Proxy, String)> {
    let url = database.url();
    let (before, name) = url.rsplit_once('/').context("no database in the address")?;
    let (_, address) = before.rsplit_once('@').context("no user in the address")?;
    let line = Proxy::to(address.parse::<SocketAddr>()?)?;
    let held = format!("postgres://postgres@{}/{name}", line.address());
    Ok((line, held))
}

#[test]
fn copies_are_served_while_the_database_keeps_everybody_else_waiting() {
    let _company = Company::join();
    let database = need!(postgres::shared()).database("slow").unwrap();
    let (line, url) = behind_line(&database).unwrap();
    let (_app, curt, mut api) = start(&url, &[("cache.entry_ttl", "600s"), ("log.level", "off")]);
    let address = curt.http().unwrap();
    let hot = create(&mut api, "https://example.com/hot");
    assert_eq!(api.follow(&hot).unwrap().status, 302);
    line.set(Line::Held);
    let stop_waiting = Arc::new(AtomicBool::new(false));
    // More than there are connections for look-ups.
    let waiting: Vec<_> = (0..24)
        .map(|client| {
            let stop = Arc::clone(&stop_waiting);
            thread::spawn(move || {
                let mut api = Api::new(address, "");
                let mut answers = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    answers.push(api.follow(&format!("cold-{client}")).unwrap().status);
                }
                answers
            })
        })
        .collect();
    for _ in 0..200 {
        assert_eq!(api.follow(&hot).unwrap().status, 302);
        thread::sleep(Duration::from_millis(10));
    }
    stop_waiting.store(true, Ordering::Relaxed);
    for client in waiting {
        let answers = client.join().unwrap();
        assert!(
            !answers.is_empty() && answers.iter().all(|status| *status == 503),
            "{answers:?}"
        );
    }
    line.set(Line::Sound);
    eventually(SEEN_WITHIN, || match api.follow("cold").unwrap() {
        answer if answer.status == 404 => Ok(()),
        answer => Err(format!("{answer:?}")),
    });
    stop(curt);
}
