//! One server that takes turns with others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::contest::Series;
use super::curt::{ClickCounters, Curt};
use super::nginx::Nginx;
use super::store::PreparedStore;
use super::{CONNECTIONS, Cores, target_of};
use crate::keys::{KeySet, Pick};
use crate::load::{Idle, Limit, LoadReport, Plan, RedirectLoad, ServerProcess, Shape, redirect};
use crate::pin;

/// A running server, and what is asked of it.
pub(super) struct Contender {
    pub(super) name: &'static str,
    pub(super) addr: SocketAddr,
    pub(super) process: ServerProcess,
    pub(super) keys: Arc<KeySet>,
    pub(super) pick: Pick,
    pub(super) target_of: Option<fn(&str) -> String>,
    /// Of a server that counts clicks.
    pub(super) clicks: Option<ClickCounters>,
}

/// What loading a server gave.
pub(super) struct Measured {
    pub(super) report: LoadReport,
    /// Processor time that counting the clicks took after the last answer.
    pub(super) later_nanos: u64,
    /// Of the run's clicks those that were counted when the last was answered.
    counted_share: f64,
}

impl Measured {
    pub(super) fn add_to(&self, series: &mut Series, turn: u32) {
        series.add_with(turn, &self.report, self.later_nanos);
        if let Some(figures) = series.values.last_mut() {
            figures.counted_share = self.counted_share;
        }
    }
}

impl Contender {
    /// curt, asked for the prepared links by popularity.
    pub(super) fn curt(name: &'static str, server: &Curt, store: &PreparedStore) -> Self {
        Self {
            name,
            addr: server.http,
            process: server.process(),
            pick: store.popularity.clone(),
            keys: Arc::clone(&store.keys),
            target_of: Some(target_of),
            clicks: None,
        }
    }

    /// nginx, which answers the same keys with one target.
    pub(super) fn nginx(name: &'static str, server: &Nginx, store: &PreparedStore) -> Self {
        Self {
            name,
            addr: server.addr,
            process: server.process(),
            pick: store.popularity.clone(),
            keys: Arc::clone(&store.keys),
            target_of: None,
            clicks: None,
        }
    }

    /// Loads the server and waits until it has counted the clicks: that is part of their price, and must not run into
    /// the next one's turn.
    pub(super) fn measure(&self, cores: Cores, load: &RedirectLoad) -> anyhow::Result<Measured> {
        let before = self.clicks.as_ref().map(ClickCounters::read).transpose()?;
        let report = run_load(cores, load, self.name)?;
        let answered = self.process.reading()?;
        let mut counted_share = 0.0;
        if let (Some(clicks), Some(before)) = (&self.clicks, before) {
            let meanwhile = clicks.read()?.counted - before.counted;
            counted_share = meanwhile as f64 / report.requests.max(1) as f64;
            clicks.wait_until_counted(before, report.requests)?;
        }
        let later_nanos = self.process.reading()?.since(&answered).all;
        Ok(Measured {
            report,
            later_nanos,
            counted_share,
        })
    }

    pub(super) fn load(&self, length: Duration, shape: Shape, seed: u64) -> RedirectLoad {
        let mut plan = Plan::new(self.addr);
        plan.connections = CONNECTIONS;
        plan.limit = Limit {
            duration: length,
            requests: None,
        };
        plan.seed = seed;
        plan.idle = Idle::Spin;
        plan.server = Some(self.process);
        RedirectLoad {
            plan,
            keys: Arc::clone(&self.keys),
            pick: self.pick.clone(),
            shape,
            target_of: self.target_of,
        }
    }
}

/// Runs a load on the generator's core. Figures of a server that answered wrongly are worth nothing.
pub(super) fn run_load(
    cores: Cores,
    load: &RedirectLoad,
    name: &str,
) -> anyhow::Result<LoadReport> {
    let report = pin::on_core(cores.generator, || redirect(load))
        .context("cannot bind the generator to its core")?
        .with_context(|| format!("cannot load {name}"))?;
    ensure!(report.failed() == 0, "{name} failed requests:\n{report}");
    Ok(report)
}

/// Follows each of `keys` once.
pub(super) fn follow_each(cores: Cores, server: &Curt, keys: &Arc<KeySet>) -> anyhow::Result<()> {
    let mut plan = Plan::new(server.http);
    plan.connections = CONNECTIONS;
    plan.limit = Limit::requests(keys.len() as u64);
    let load = RedirectLoad {
        plan,
        keys: Arc::clone(keys),
        pick: Pick::InOrder,
        shape: Shape::Minimal,
        target_of: Some(target_of),
    };
    run_load(cores, &load, "curt, each link once").map(drop)
}
