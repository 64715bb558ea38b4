//! `curt-bench redirect` and `curt-bench create`: one load on a server of this machine.

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
