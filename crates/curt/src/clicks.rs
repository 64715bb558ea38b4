//! The clicks line of this process: from the workers' click writers to the counts in the database.
//!
//! A spool belongs to one process at a time. Where it is the stream itself, clicks are counted by the process that writes
//! them down, and one that has no role `clicks` leaves them there, up to its bound, for the next one that has. Where
//! processes share a stream, each server forwards its spool there, and those with the role `clicks` count what is there.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use curt_clicks::capture::Capture;
use curt_clicks::classify::{AddressList, CurrentReference, ReferenceFiles, ReferencePaths};
use curt_clicks::consume::{
    self, ConsumerMetrics, ConsumerPorts, FlushRequests, Pipeline, RemoteFreshness, Retention,
};
use curt_clicks::erase::ClickEraser;
use curt_clicks::forward::{ForwardMetrics, ForwardPorts, Forwarder};
use curt_clicks::report::{FreshReports, ReportLag, Reports};
use curt_core::ports::{ClickDatabase, ClickReports, ClickSink, ClickStore, FlushChannel};
use curt_core::{ClockGuard, Dimension};
use curt_http::{Readiness, RouterClicks};
use curt_spool::{Spool, SpoolMetrics};
use prometheus_client::registry::Registry;

use crate::click_health::ClickHealth;
use crate::config::check::at;
use crate::config::{ClickSettings, Config, ConfigError};
use crate::forward_health::ForwardHealth;
use crate::roles::{Role, Roles};
use crate::supervisor::Supervisor;
use crate::wiring::{Stores, StreamEnd};

const COUNTRIES: &str = ReferenceFiles::COUNTRIES;
const NETWORKS: &str = ReferenceFiles::NETWORKS;

/// What sees to it that counting is told about and does no harm, and what clicks are read by.
pub(crate) struct ClickWatchers {
    pub(crate) ready: Arc<Readiness>,
    pub(crate) clock_guard: Arc<ClockGuard>,
    pub(crate) reference: CurrentReference,
}

impl ClickWatchers {
    pub(crate) fn new(
        ready: &Arc<Readiness>,
        clock_guard: &Arc<ClockGuard>,
        reference: &CurrentReference,
    ) -> Self {
        Self {
            ready: ready.clone(),
            clock_guard: clock_guard.clone(),
            reference: reference.clone(),
        }
    }
}

/// What the server writes and reads clicks with.
#[derive(Default)]
pub(crate) struct ClickLine {
    /// One for each redirect worker.
    pub(crate) workers: Vec<Capture>,
    pub(crate) router: Option<RouterClicks>,
    pub(crate) reports: Option<Arc<Reports>>,
    pub(crate) eraser: Option<Arc<ClickEraser>>,
}

impl ClickLine {
    /// Starts what the configuration and the roles of this process ask for.
    pub(crate) fn start(
        config: &Config,
        roles: &Roles,
        stores: &mut Stores,
        supervisor: &Supervisor,
        registry: &mut Registry,
        watchers: ClickWatchers,
    ) -> anyhow::Result<Self> {
        match &config.clicks {
            Some(settings) if roles.need_clicks() => {
                let store = stores.open_clicks(config)?;
                Self::open(
                    roles, settings, store, stores, supervisor, registry, watchers,
                )
            }
            _ => Ok(Self::default()),
        }
    }

    /// Opens what this process does its part with: the spool where clicks are captured, the stream that processes share
    /// where there is one; and starts to forward and to count.
    fn open(
        roles: &Roles,
        settings: &ClickSettings,
        store: Arc<dyn ClickDatabase>,
        stores: &mut Stores,
        supervisor: &Supervisor,
        registry: &mut Registry,
        watchers: ClickWatchers,
    ) -> anyhow::Result<Self> {
        let mut line = Self::default();
        let ready = &watchers.ready;
        let counted = line.open_stream(roles, settings, stores, supervisor, registry, ready)?;
        let mut lag = ReportLag {
            own: None,
            freshness: None,
            others: Some(settings.flush.window),
        };
        let mut reports: Arc<dyn ClickReports> = store.clone();
        let mut eraser = ClickEraser::new(store.clone());
        let mut asked = None;
        if let Some(stream) = &settings.stream {
            let channel = stores.open_flush_channel(stream)?;
            if roles.serve_http() {
                let (requests, freshness) = ask_others(channel.clone(), supervisor);
                eraser = eraser.after_flush(requests.clone());
                lag.freshness = Some(freshness);
                reports = Arc::new(FreshReports::new(reports, requests));
            }
            asked = Some(channel);
        }
        if let Some(counted) = counted {
            let source = counted.source.clone();
            let pipeline = count(
                settings,
                counted,
                store.clone(),
                stores,
                supervisor,
                registry,
                &watchers,
            )?;
            let requests = pipeline.flush_requests();
            if let Some(channel) = asked {
                // Own consumers are asked like those of others.
                supervisor.start("flush-requests", |stop| {
                    consume::answer_others(requests, channel, source, stop)
                });
            } else {
                eraser = eraser.after_flush(requests.clone());
                reports = Arc::new(FreshReports::new(reports, requests));
            }
            lag.own = Some(pipeline.state());
            // Nobody else counts into a file.
            if !settings.flush.has_remote_store {
                lag.others = None;
            }
            let clock = stores.clock.clone();
            let health = ClickHealth::new(pipeline.state(), store, clock, watchers.ready, registry);
            supervisor.start("click-health", |stop| health.watch(stop));
        }
        let reports = Reports::new(reports, settings.retention.clicks_kept)
            .with_lag(lag)
            .lacking(missing_files(settings));
        line.reports = Some(Arc::new(reports));
        line.eraser = Some(Arc::new(eraser));
        Ok(line)
    }

    /// Opens the spool and starts to forward it, as far as this process has to do with them, and returns what it counts.
    fn open_stream(
        &mut self,
        roles: &Roles,
        settings: &ClickSettings,
        stores: &mut Stores,
        supervisor: &Supervisor,
        registry: &mut Registry,
        ready: &Arc<Readiness>,
    ) -> anyhow::Result<Option<StreamEnd>> {
        let Some(stream) = &settings.stream else {
            let spool = self.open_spool(settings, stores, registry)?;
            return Ok(count_or_keep(spool, roles, supervisor));
        };
        if roles.serve_http() {
            let spool = self.open_spool(settings, stores, registry)?;
            let sink = stores.open_stream_sink(stream)?;
            forward(settings, spool, sink, stores, supervisor, registry, ready);
        }
        let is_counted = roles.has(Role::Clicks);
        let end = is_counted.then(|| stores.open_stream_end(stream, registry));
        end.transpose()
    }

    /// Opens the spool and takes its writers.
    fn open_spool(
        &mut self,
        settings: &ClickSettings,
        stores: &Stores,
        registry: &mut Registry,
    ) -> anyhow::Result<Spool> {
        let metrics = SpoolMetrics::register(registry);
        let now = stores.clock.now();
        let spool = Spool::open(&settings.folder, &settings.spool, now, &metrics)
            .with_context(|| format!("could not open the spool {}", settings.folder.display()))?;
        let router = settings.spool.writers - 1;
        let capture = |number| spool.take_writer(number).map(Capture::new);
        self.workers = (0..router).map(capture).collect::<Result<_, _>>()?;
        self.router = Some(RouterClicks::new(capture(router)?));
        Ok(spool)
    }
}

/// Has the reports of this process ask the consumers of all.
fn ask_others(
    channel: Arc<dyn FlushChannel>,
    supervisor: &Supervisor,
) -> (FlushRequests, RemoteFreshness) {
    let (requests, freshness) = (FlushRequests::default(), RemoteFreshness::default());
    let served = (requests.clone(), freshness.clone());
    supervisor.start("flush-asks", |stop| {
        consume::ask_others(served.0, channel, served.1, stop)
    });
    (requests, freshness)
}

/// A spool that is the stream itself is counted here, or kept open for its writers.
fn count_or_keep(spool: Spool, roles: &Roles, supervisor: &Supervisor) -> Option<StreamEnd> {
    let spool = Arc::new(spool);
    if roles.has(Role::Clicks) {
        return Some(StreamEnd {
            source: spool.clone(),
            dead_letters: spool,
        });
    }
    supervisor.start("spool", |stop| async move {
        stop.cancelled().await;
        drop(spool);
    });
    None
}

/// Forwards what is captured here to the stream that processes share.
fn forward(
    settings: &ClickSettings,
    spool: Spool,
    sink: Arc<dyn ClickSink>,
    stores: &Stores,
    supervisor: &Supervisor,
    registry: &mut Registry,
    ready: &Arc<Readiness>,
) {
    let spool = Arc::new(spool);
    let ports = ForwardPorts {
        source: spool.clone(),
        dead_letters: spool,
        sink,
        clock: stores.clock.clone(),
    };
    let metrics = ForwardMetrics::register(registry);
    let forwarder = Forwarder::new(ports, settings.forward, metrics);
    let clock = stores.clock.clone();
    let health = ForwardHealth::new(forwarder.state(), clock, ready.clone(), registry);
    supervisor.start("forward-health", |stop| health.watch(stop));
    supervisor.start("forward", |stop| forwarder.run_on_own_thread(stop));
}

fn count(
    settings: &ClickSettings,
    stream: StreamEnd,
    store: Arc<dyn ClickStore>,
    stores: &mut Stores,
    supervisor: &Supervisor,
    registry: &mut Registry,
    watchers: &ClickWatchers,
) -> anyhow::Result<Arc<Pipeline>> {
    let counters = settings.counters.as_ref();
    let counters = counters.map(|address| stores.open_click_counters(address));
    let ports = ConsumerPorts {
        source: stream.source,
        dead_letters: stream.dead_letters,
        store: store.clone(),
        counters: counters.transpose()?,
        clock: stores.clock.clone(),
        reference: watchers.reference.clone(),
    };
    let metrics = ConsumerMetrics::register(registry);
    let pipeline = Pipeline::new(ports, settings.flush, metrics.clone());
    let running = Arc::clone(&pipeline);
    supervisor.start("clicks", |stop| running.run_on_own_thread(stop));
    let retention = Retention::new(store, stores.clock.clone(), settings.retention, metrics)
        .guarded_by(watchers.clock_guard.clone());
    supervisor.start("click-retention", |stop| retention.run(stop));
    Ok(pipeline)
}

/// Loads the files that clicks are read by, and keeps what they say up to date. Lists of addresses are of use only where
/// clicks are counted.
pub(crate) fn follow_files(
    config: &Config,
    roles: &Roles,
    supervisor: &Supervisor,
) -> Result<CurrentReference, ConfigError> {
    let counted = config.clicks.as_ref().filter(|_| roles.has(Role::Clicks));
    let paths = ReferencePaths {
        rules: config.click_rules.path.clone(),
        countries: counted.and_then(|settings| settings.countries.clone()),
        networks: counted.and_then(|settings| settings.networks.clone()),
    };
    let files = ReferenceFiles::open(paths).map_err(|error| ConfigError::new(error.to_string()))?;
    let (current, every) = (files.current(), config.click_rules.reload);
    supervisor.start("click-files", |stop| files.watch(every, stop));
    Ok(current)
}

/// Reads the files of addresses, and forgets them.
pub(crate) fn check_files(settings: &ClickSettings) -> Result<(), ConfigError> {
    let mut mistakes = ConfigError::none();
    for (setting, file) in [
        (COUNTRIES, &settings.countries),
        (NETWORKS, &settings.networks),
    ] {
        mistakes.note(addresses(setting, file.as_deref()));
    }
    mistakes.into_result()
}

fn addresses(setting: &str, file: Option<&Path>) -> Result<AddressList, ConfigError> {
    let Some(file) = file else {
        return Ok(AddressList::none());
    };
    let read = AddressList::open(file).map_err(|error| {
        format!(
            "could not read {} as MMDB: {error}; \"make geoip\" fetches a file of countries",
            file.display()
        )
    });
    at(setting, read)
}

/// Dimensions that have no values because a setting names no file.
fn missing_files(settings: &ClickSettings) -> Vec<(Dimension, &'static str)> {
    let mut missing = Vec::new();
    if settings.countries.is_none() {
        missing.extend([Dimension::Country, Dimension::City].map(|one| (one, COUNTRIES)));
    }
    if settings.networks.is_none() {
        missing.push((Dimension::Network, NETWORKS));
    }
    missing
}
