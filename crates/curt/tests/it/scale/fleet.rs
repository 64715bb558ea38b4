//! Servers over one PostgreSQL, each on ports of its own, and the balancer that is shipped before them.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use curt_testkit::engines::Port;
use curt_testkit::engines::haproxy::Balancer;
use curt_testkit::engines::postgres::{self, Database};
use curt_testkit::http::Client;
use curt_testkit::process::{App, Server};

use crate::alone::Company;
use crate::length::time_max;
use crate::metrics::Metrics;
use crate::site::STOP_TIME_MAX;
use crate::wait::eventually;

pub(crate) const SERVERS: usize = 3;

/// Three servers of one installation.
pub(crate) struct Fleet {
    app: App,
    token: String,
    places: Vec<Place>,
    _database: Database,
    _company: Company,
}

/// The ports of a server, which it has again after a restart.
struct Place {
    http: Port,
    agent: Port,
    server: Option<Server>,
}

impl Fleet {
    pub(crate) fn start(settings: &[(&str, &str)]) -> Result<Self> {
        let company = Company::join();
        let database = postgres::shared()?.database("fleet")?;
        let app = App::new(env!("CARGO_BIN_EXE_curt"))?
            .ready_within(Duration::from_secs(120))
            .setting("store.links", database.url())
            // The machine may be busy: engines are not to fail requests here.
            .setting("postgres.lookup_timeout", "30s")
            .setting("postgres.write_timeout", "30s")
            .setting("postgres.connect_timeout", "30s")
            .setting("server.workers", "1")
            .setting("log.level", "warn");
        let app = settings
            .iter()
            .fold(app, |app, (key, value)| app.setting(key, value));
        app.run(&["user", "add", "tests@example.com"])?;
        let mut fleet = Self {
            token: String::new(),
            app,
            places: Vec::new(),
            _database: database,
            _company: company,
        };
        fleet.token = fleet.new_token("tests");
        for number in 0..SERVERS {
            fleet.places.push(Place {
                http: Port::free()?,
                agent: Port::free()?,
                server: None,
            });
            fleet.start_server(number);
        }
        Ok(fleet)
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Another API key.
    pub(crate) fn new_token(&self, name: &str) -> String {
        let add = ["api-key", "add", name, "--user", "tests@example.com"];
        self.app.run(&add).unwrap().trim().to_owned()
    }

    pub(crate) fn start_server(&mut self, number: usize) {
        let place = &mut self.places[number];
        let settings = [
            format!("server.listen={}", place.http.address()),
            format!("server.agent_listen={}", place.agent.address()),
            format!("data_dir=data-{number}"),
        ];
        let arguments = settings.iter().flat_map(|setting| ["--set", setting]);
        let arguments: Vec<&str> = arguments.collect();
        place.server = Some(self.app.start_with(&arguments).unwrap());
    }

    pub(crate) fn stop_server(&mut self, number: usize) {
        let server = self.places[number].server.take().unwrap();
        let logs = server.logs();
        let ended = server.terminate(time_max(2 * STOP_TIME_MAX)).unwrap();
        assert_eq!(ended.code(), Some(0), "{logs}");
    }

    /// kill -9.
    pub(crate) fn kill_server(&mut self, number: usize) {
        self.places[number].server.take().unwrap().kill().unwrap();
    }

    pub(crate) fn server(&self, number: usize) -> &Server {
        self.places[number].server.as_ref().unwrap()
    }

    pub(crate) fn http(&self, number: usize) -> SocketAddr {
        self.places[number].http.address()
    }

    pub(crate) fn metric(&self, number: usize, name: &str) -> Option<f64> {
        let admin = self.server(number).admin().unwrap();
        let answer = Client::new(admin).get("/metrics").unwrap();
        Metrics::parse(&answer.text()).get(name)
    }

    /// HAProxy with the file that is shipped, at this address.
    pub(crate) fn balance(&self, front: &Port) -> Result<Balancer> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/haproxy.cfg");
        let mut text = fs::read_to_string(path)?;
        let servers: String = (1..)
            .zip(&self.places)
            .map(|(number, place)| {
                let (http, agent) = (place.http.address(), place.agent.number());
                format!("  server curt{number} {http} agent-port {agent}\n")
            })
            .collect();
        let written = "  server curt1 10.0.0.11:8080\n  server curt2 10.0.0.12:8080\n";
        for (written, meant) in [
            (":80\n", format!("{}\n", front.address())),
            (written, servers),
        ] {
            assert!(text.contains(written), "{written} is not in the example");
            text = text.replace(written, &meant);
        }
        let balancer = Balancer::start_with(&text)?;
        wait_until_balanced(&balancer, SERVERS);
        Ok(balancer)
    }
}

/// What HAProxy says about one server.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub(crate) is_up: bool,
    pub(crate) weight: u32,
    /// Requests that it was given so far.
    pub(crate) requests: u64,
}

/// The servers of a backend, in order.
pub(crate) fn shares(balancer: &Balancer, backend: &str) -> Vec<Share> {
    let stats = balancer.run_command("show stat").unwrap();
    let mut lines = stats.lines();
    let names: Vec<&str> = lines
        .next()
        .unwrap()
        .trim_start_matches("# ")
        .split(',')
        .collect();
    let column = |name: &str| names.iter().position(|known| *known == name).unwrap();
    let columns = ["status", "weight", "stot"].map(column);
    let of_backend = lines.filter(|line| line.starts_with(&format!("{backend},curt")));
    of_backend
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let [status, weight, requests] = columns.map(|column| fields[column]);
            Share {
                is_up: status.starts_with("UP"),
                weight: weight.parse().unwrap(),
                requests: requests.parse().unwrap(),
            }
        })
        .collect()
}

/// Waits until so many servers get requests of both kinds.
pub(crate) fn wait_until_balanced(balancer: &Balancer, count: usize) {
    eventually(Duration::from_secs(30), || {
        let up = ["links", "api"].map(|backend| {
            let shares = shares(balancer, backend);
            shares
                .iter()
                .filter(|share| share.is_up && share.weight > 0)
                .count()
        });
        match up == [count, count] {
            true => Ok(()),
            false => Err(format!("{up:?} of {count}")),
        }
    });
}
