//! The subcommands: one load on a server of this machine (`redirect`, `create`), a steady stream of clicks (`sustained`),
//! two builds in turns (`ab`).

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use curt_bench::keys::KeySet;
use curt_bench::load::{
    CreateLoad, Limit, LoadReport, Plan, RedirectLoad, ServerProcess, Shape, create, redirect,
};
use curt_bench::suite::{self, AbOptions, SustainedOptions, Verdict};

/// Follow links, Zipf(1.0) over the given keys, and print latencies and the server's CPU time per request
#[derive(Args, Debug)]
pub(crate) struct Redirect {
    #[command(flatten)]
    plan: PlanArgs,

    /// Keys to ask for, one per line; without it, links are made first (which needs --api-key)
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,

    /// How many links to make when no file is given
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    links: u64,

    /// The API key to make them with
    #[arg(long, env = "CURT_API_KEY", hide_env_values = true, value_name = "KEY")]
    api_key: Option<String>,

    /// How the requests look
    #[arg(long, value_enum, default_value_t = ShapeArg::Minimal)]
    shape: ShapeArg,
}

/// Make links and print latencies and the server's CPU time per request
#[derive(Args, Debug)]
pub(crate) struct Create {
    #[command(flatten)]
    plan: PlanArgs,

    /// The API key
    #[arg(long, env = "CURT_API_KEY", hide_env_values = true, value_name = "KEY")]
    api_key: String,

    /// Links per request, through the bulk endpoint
    #[arg(long, value_name = "N")]
    bulk: Option<usize>,
}

/// Stream clicks at a steady rate into a server with default settings, on two cores that it shares with the generator,
/// and print whether counting kept up; fails when it did not
#[derive(Args, Debug)]
pub(crate) struct Sustained {
    /// The server to measure
    #[arg(long, value_name = "FILE", default_value = "target/release/curt")]
    curt: PathBuf,

    /// Clicks per second
    #[arg(long, default_value_t = 60_000.0)]
    rate: f64,

    /// How long to go on
    #[arg(long, default_value_t = 300.0)]
    seconds: f64,

    /// Links in the store, followed by Zipf(1.0)
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=200_000_000))]
    links: u32,

    /// Folder for databases; emptied afterwards
    #[arg(long, value_name = "FOLDER", default_value = "bench/work")]
    work: PathBuf,
}

/// Compare two builds of curt in turns: CPU of redirects and creates, start, idle memory; fails when B is worse
#[derive(Args, Debug)]
pub(crate) struct Ab {
    /// The build to compare with
    #[arg(long, value_name = "FILE")]
    a: PathBuf,

    /// The build to judge
    #[arg(long, value_name = "FILE", default_value = "target/release/curt")]
    b: PathBuf,

    /// By how many percent B may be worse
    #[arg(long, default_value_t = 5.0)]
    within: f64,

    /// Rounds; each build runs once in each
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// Length of one run
    #[arg(long, default_value_t = 0.6)]
    seconds: f64,

    /// Links that each build makes through its API
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    links: u32,

    /// Folder for databases; emptied afterwards
    #[arg(long, value_name = "FOLDER", default_value = "bench/work")]
    work: PathBuf,
}

#[derive(Args, Debug)]
struct PlanArgs {
    /// The server's address; only this machine's own are accepted
    #[arg(long, env = "CURT_URL", default_value = "http://127.0.0.1:8080")]
    url: String,

    /// Connections open at once
    #[arg(long, default_value_t = 64)]
    connections: usize,

    /// How long to go on
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,

    /// Stop after this many requests
    #[arg(long)]
    requests: Option<u64>,

    /// Send at this many requests per second, whatever the answers do; latencies then include waiting
    #[arg(long)]
    rate: Option<f64>,

    /// The server's process, to measure its CPU time
    #[arg(long)]
    pid: Option<u32>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShapeArg {
    /// A Host header and no more
    Minimal,
    /// What a browser sends: 11 headers
    Browser,
    /// Headers of many browsers, apps and bots
    Mixed,
}

impl PlanArgs {
    fn plan(&self) -> anyhow::Result<Plan> {
        let mut plan = Plan::new(address(&self.url)?);
        plan.connections = self.connections;
        plan.limit = Limit {
            duration: Duration::try_from_secs_f64(self.seconds)
                .context("--seconds must be above 0")?,
            requests: self.requests,
        };
        plan.rate = self.rate;
        plan.server = self.pid.map(|pid| ServerProcess {
            pid,
            children: true,
        });
        Ok(plan)
    }

    fn show(&self, report: &LoadReport) -> anyhow::Result<()> {
        if self.json {
            println!("{}", serde_json::to_string_pretty(report)?);
        } else {
            print!("{report}");
        }
        anyhow::ensure!(
            report.failed() == 0,
            "{} requests were not answered as expected",
            report.failed()
        );
        Ok(())
    }
}

fn address(url: &str) -> anyhow::Result<SocketAddr> {
    let rest = url.strip_prefix("http://");
    let host = rest.context("loads speak plain HTTP: write http://HOST:PORT")?;
    let host = host.trim_end_matches('/');
    host.to_socket_addrs()
        .with_context(|| format!("{host:?} is not HOST:PORT"))?
        .next()
        .with_context(|| format!("{host} has no address"))
}

impl Redirect {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let plan = self.plan.plan()?;
        let keys = match &self.keys {
            Some(path) => std::fs::read_to_string(path)
                .with_context(|| format!("could not read {}", path.display()))?
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect::<KeySet>(),
            None => self.make_links(plan)?,
        };
        let mut load = RedirectLoad::new(plan, Arc::new(keys));
        load.shape = match self.shape {
            ShapeArg::Minimal => Shape::Minimal,
            ShapeArg::Browser => Shape::Browser,
            ShapeArg::Mixed => Shape::Mixed,
        };
        self.plan.show(&redirect(&load)?)
    }

    fn make_links(&self, plan: Plan) -> anyhow::Result<KeySet> {
        let api_key = self.api_key.as_deref().context(
            "give keys with --keys FILE, or an API key with --api-key to make links first",
        )?;
        eprintln!("making {} links", self.links);
        let per_request = 500.min(self.links.max(1));
        let mut load = CreateLoad::new(plan, api_key);
        load.plan.rate = None;
        load.plan.connections = 4;
        load.plan.limit = Limit::requests(self.links.div_ceil(per_request));
        load.bulk = usize::try_from(per_request).ok();
        load.keep_keys = true;
        let made = create(&load)?;
        anyhow::ensure!(
            made.load.failed() == 0,
            "could not make the links:\n{}",
            made.load
        );
        Ok(made.keys.iter().collect())
    }
}

impl Create {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut load = CreateLoad::new(self.plan.plan()?, self.api_key.as_str());
        load.bulk = self.bulk;
        self.plan.show(&create(&load)?.load)
    }
}

impl Sustained {
    pub(crate) fn run(self) -> anyhow::Result<Vec<Verdict>> {
        let report = suite::sustained(&SustainedOptions {
            curt: self.curt,
            work: self.work,
            links: self.links,
            rate: self.rate,
            duration: Duration::try_from_secs_f64(self.seconds)
                .context("--seconds must be above 0")?,
        })?;
        print!("{report}");
        Ok(report.verdicts())
    }
}

impl Ab {
    pub(crate) fn run(self) -> anyhow::Result<Vec<Verdict>> {
        let report = suite::ab(&AbOptions {
            a: self.a,
            b: self.b,
            work: self.work,
            links: self.links,
            rounds: self.rounds,
            seconds: self.seconds,
            within: self.within,
        })?;
        print!("{report}");
        Ok(report.verdicts())
    }
}
