//! What links over databases cost beside the databases alone. The figures are printed; `make soak` judges them.

mod bare;
mod creates;
mod dead_node;
mod misses;
mod unknown_keys;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use curt_bench::keys::{KeySet, Pick};
use curt_bench::load::{
    CreateLoad, CreateReport, Limit, LoadReport, Plan, RedirectLoad, ServerProcess, create,
    redirect,
};
use curt_bench::median::Spread;
use curt_testkit::process::{App, Server};

use crate::alone::Company;

const START_MAX: Duration = Duration::from_secs(120);
/// Far fewer links than these tests make: almost every redirect asks the database.
const SMALL_CACHE: &str = "64KiB";

/// One server with an API key.
struct Installation {
    server: Server,
    token: String,
    _app: App,
    _company: Company,
}

impl Installation {
    /// As shipped, but for its databases and these settings.
    fn start(settings: &[(&str, &str)]) -> Result<Self> {
        let company = Company::join();
        let mut app = App::new(env!("CARGO_BIN_EXE_curt"))?.ready_within(START_MAX);
        for (name, value) in settings {
            app = app.setting(name, value);
        }
        app = app
            .setting("limits.misses_per_address", "")
            .setting("log.level", "error");
        app.run(&["migrate", "--new"])?;
        let token = app.run(&["api-key", "add", "rates"])?;
        let token = token.trim().to_owned();
        let server = app.start()?;
        Ok(Self {
            server,
            token,
            _app: app,
            _company: company,
        })
    }

    fn plan(&self) -> Result<Plan> {
        let mut plan = Plan::new(self.server.http()?);
        plan.server = Some(ServerProcess {
            pid: self.server.pid(),
            children: false,
        });
        Ok(plan)
    }

    /// Makes links in bulk for this long, or so many of them, and returns their keys.
    fn create_in_bulk(&self, connections: usize, limit: Limit) -> Result<CreateReport> {
        let mut plan = self.plan()?;
        (plan.connections, plan.limit) = (connections, limit);
        let mut load = CreateLoad::new(plan, &self.token);
        (load.bulk, load.keep_keys) = (Some(BULK), true);
        let report = create(&load)?;
        anyhow::ensure!(report.load.failed() == 0, "{}", report.load);
        Ok(report)
    }

    fn create_links(&self, count: usize) -> Result<KeySet> {
        let requests = Limit::requests(count.div_ceil(BULK) as u64);
        let made = self.create_in_bulk(2, requests)?;
        Ok(made.keys.iter().collect())
    }

    /// Follows links, each as often as any other.
    fn follow(&self, keys: &Arc<KeySet>, change: impl FnOnce(&mut Plan)) -> Result<LoadReport> {
        let mut plan = self.plan()?;
        change(&mut plan);
        let mut load = RedirectLoad::new(plan, Arc::clone(keys));
        load.pick = Pick::Uniform;
        Ok(redirect(&load)?)
    }
}

/// Links of a request in bulk.
const BULK: usize = 1_000;

fn median(values: &[f64]) -> Result<f64> {
    let spread = Spread::of(values).context("nothing was measured")?;
    Ok(spread.median)
}
